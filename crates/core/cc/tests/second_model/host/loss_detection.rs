//! Loss detection: RFC 9002 §6 and §7.6, RFC 6298 §5 for TCP.

use uncork_cc::Timeout;
use uncork_units::{Time, TimeDelta};

use super::{Host, Sent, Status};
use crate::compare::{Memory, Report};

impl Host {
    pub(super) fn time_threshold(&self) -> TimeDelta {
        let rtt = self.rtt.map_or(TimeDelta::from_millis(500), |rtt| rtt.smoothed.max(rtt.latest));
        rtt.times(9).divided_by(8)
    }

    /// RFC 9002 §6.1: three packets or 9/8 of a round trip behind the largest acknowledged.
    pub(super) fn detect_losses(&mut self) -> Vec<(Memory, bool)> {
        let Some(largest) = self.largest_acked else { return Vec::new() };
        let threshold = self.time_threshold();
        let is_lost = |index: usize, packet: &Sent| {
            index + 3 <= largest || packet.memory.token.send_time() + threshold <= self.now
        };
        let late = (self.oldest..largest)
            .filter(|index| self.sent[*index].status == Status::InFlight)
            .filter(|index| is_lost(*index, &self.sent[*index]));
        self.declare_lost(late.collect())
    }

    pub(super) fn declare_lost(&mut self, packets: Vec<usize>) -> Vec<(Memory, bool)> {
        let mut lost = Vec::new();
        for index in packets {
            self.leave_flight(index);
            self.sent[index].status = Status::Lost;
            self.sent[index].was_lost = true;
            let data = self.sent[index].data;
            if !self.data[data].is_acked && self.data[data].copies_in_flight == 0 {
                self.to_resend.push_back(data);
            }
            lost.push((self.sent[index].memory, index > 0 && self.sent[index - 1].was_lost));
        }
        lost
    }

    pub(super) fn loss_timer(&self) -> Time {
        let Some(largest) = self.largest_acked else { return Time::NEVER };
        let behind = self.sent[self.oldest.min(largest)..largest].iter();
        let first =
            behind.filter(|p| p.status == Status::InFlight).map(|p| p.memory.token.send_time());
        first.min().map_or(Time::NEVER, |sent| sent + self.time_threshold())
    }

    pub(super) fn probe_timeout(&self) -> TimeDelta {
        let rtt = self.rtt.map_or(TimeDelta::from_millis(500), |rtt| rtt.smoothed);
        rtt.times(2) + TimeDelta::from_millis(20)
    }

    pub(super) fn probe_timer(&self) -> Time {
        if self.in_flight == 0 {
            return Time::NEVER;
        }
        self.last_activity + self.probe_timeout().times(1 << self.timeouts.min(6))
    }

    /// Sends a probe first. After that TCP declares everything in flight lost, while QUIC probes
    /// again.
    pub(super) fn on_probe_timer(&mut self) {
        self.timeouts += 1;
        if self.is_tcp && self.timeouts >= 2 {
            self.pair.on_timeout(self.now, Timeout::Retransmission);
            let flight = self.oldest..self.sent.len();
            let flight = flight.filter(|index| self.sent[*index].status == Status::InFlight);
            let lost = self.declare_lost(flight.collect());
            self.report(Report { lost, ..Report::default() });
            self.last_activity = self.now;
        } else {
            self.pair.on_timeout(self.now, Timeout::Probe);
            self.send(true);
        }
    }

    /// RFC 9002 §7.6: a run of losses longer than three probe timeouts.
    pub(super) fn is_persistent(&self, lost: &[(Memory, bool)]) -> bool {
        let [(first, _), .., (last, _)] = lost else { return false };
        let span = last.token.send_time().since(first.token.send_time());
        !self.is_tcp && span > self.probe_timeout().times(3)
    }
}
