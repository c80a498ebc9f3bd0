//! Watches the ACKs of one flow and divides them into rounds.

use uncork_units::{Time, TimeDelta};

use crate::flow::FlowEvidence;
use crate::limits::{MIN_ROUND, RESOLUTION};
use crate::round::Round;

/// What an ACK reports.
#[derive(Clone, Copy, Debug)]
pub struct AckReport {
    /// Packets acknowledged for the first time.
    pub packets: u32,
    /// Packets newly reported as marked.
    pub marked: u32,
    /// The RTT, if the ACK measured one.
    pub rtt: Option<TimeDelta>,
}

/// The evidence of a flow while it sends ECT(1). The host stops reporting to it when it stops sending ECT(1).
#[derive(Clone, Copy, Debug)]
pub struct FlowObserver {
    evidence: FlowEvidence,
    min_rtt: TimeDelta,
    packet_time: TimeDelta,
    start: Time,
    packets: u32,
    marked: u32,
    rtt: TimeDelta,
    marked_rtt: TimeDelta,
}

const _: () = assert!(size_of::<FlowObserver>() <= 128, "servers keep one per connection");

impl FlowObserver {
    /// A flow with a handshake that took `handshake_rtt`.
    pub fn new(now: Time, handshake_rtt: Option<TimeDelta>) -> Self {
        Self {
            evidence: FlowEvidence::default(),
            min_rtt: handshake_rtt.unwrap_or(TimeDelta::MAX),
            packet_time: TimeDelta::MAX,
            start: now,
            packets: 0,
            marked: 0,
            rtt: TimeDelta::MAX,
            marked_rtt: TimeDelta::MAX,
        }
    }

    /// Takes in an ACK. Returns the round that it ends, if it ends one.
    pub fn on_ack(&mut self, now: Time, ack: AckReport) -> Option<Round> {
        self.packets = self.packets.saturating_add(ack.packets);
        self.marked = self.marked.saturating_add(ack.marked);
        if let Some(rtt) = ack.rtt {
            self.take_in_rtt(rtt, ack.marked > 0);
        }
        let is_over = self.packets > 0
            && self.rtt < TimeDelta::MAX
            && now.since(self.start) >= self.rtt.max(MIN_ROUND);
        is_over.then(|| self.end_round(now))
    }

    /// The evidence so far.
    pub fn evidence(&self) -> FlowEvidence {
        self.evidence
    }

    /// ECN does not work on the path: marks are cleared or not credible (RFC 9000 §13.4.2, RFC 9768 §3.2.2.3).
    pub fn on_ecn_failure(&mut self) {
        self.evidence.ecn_fails = true;
    }

    /// The flow's own test found a classic queue.
    pub fn on_fall_back(&mut self) {
        self.evidence.fell_back = true;
    }

    fn take_in_rtt(&mut self, rtt: TimeDelta, is_marked: bool) {
        if rtt + RESOLUTION < self.min_rtt && self.min_rtt < TimeDelta::MAX {
            self.evidence.forget_kinds();
        }
        self.min_rtt = self.min_rtt.min(rtt);
        self.rtt = self.rtt.min(rtt);
        if is_marked {
            self.marked_rtt = self.marked_rtt.min(rtt);
        }
    }

    #[cold]
    fn end_round(&mut self, now: Time) -> Round {
        let per_packet = now.since(self.start).divided_by(u64::from(self.packets));
        self.packet_time = self.packet_time.min(per_packet);
        let round = Round {
            start: self.start,
            end: now,
            packets: self.packets,
            marked: self.marked,
            min_rtt: self.min_rtt,
            rtt: self.rtt,
            // Marks may come with an ACK that measures nothing.
            marked_rtt: if self.marked_rtt < TimeDelta::MAX { self.marked_rtt } else { self.rtt },
            packet_time: self.packet_time,
        };
        self.evidence.add(&round);
        (self.start, self.packets, self.marked) = (now, 0, 0);
        (self.rtt, self.marked_rtt) = (TimeDelta::MAX, TimeDelta::MAX);
        round
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::round::RoundKind;

    const MS: fn(u64) -> TimeDelta = TimeDelta::from_millis;

    /// Reports two packets every millisecond from `from` to `to`, with this RTT; every tenth ACK has a mark if `marks`.
    fn acks(flow: &mut FlowObserver, (from, to): (u64, u64), rtt: u64, marks: bool) -> Vec<Round> {
        let ack = |at: u64| {
            let marked = u32::from(marks && at.is_multiple_of(10));
            let report = AckReport { packets: 2, marked, rtt: Some(MS(rtt)) };
            flow.on_ack(Time::ZERO + MS(at), report)
        };
        (from..to).filter_map(ack).collect()
    }

    fn flow() -> FlowObserver {
        FlowObserver::new(Time::ZERO, Some(MS(20)))
    }

    #[test]
    fn round_ends_after_its_rtt_and_25_ms() {
        let lengths = |rtt| {
            let rounds = acks(&mut flow(), (1, 500), rtt, false);
            rounds.iter().map(|round| round.end.since(round.start)).collect::<Vec<_>>()
        };
        assert!(lengths(20).iter().all(|length| *length == MS(25)), "{:?}", lengths(20));
        assert!(lengths(60).iter().all(|length| *length == MS(60)), "{:?}", lengths(60));
    }

    #[test]
    fn round_has_the_smallest_rtts_and_the_packets() {
        let mut flow = flow();
        let round = acks(&mut flow, (1, 27), 31, true).pop();
        assert_eq!(round, None, "31 ms have not passed");
        let round = acks(&mut flow, (27, 32), 34, true).pop().expect("a round");
        assert_eq!((round.packets, round.marked), (62, 3));
        assert_eq!((round.queue(), round.marked_queue()), (MS(11), MS(11)));
        assert_eq!(round.packet_time, TimeDelta::from_micros(500));
        assert_eq!(round.kind(), RoundKind::Classic);
    }

    #[test]
    fn idle_flow_ends_no_round_until_an_ack_measures() {
        let mut flow = flow();
        let empty = AckReport { packets: 0, marked: 0, rtt: None };
        assert_eq!(flow.on_ack(Time::ZERO + MS(500), empty), None);
        assert_eq!(flow.on_ack(Time::ZERO + MS(600), AckReport { packets: 1, ..empty }), None);
        assert_eq!(flow.evidence(), FlowEvidence::default());
    }

    /// A flow that starts into another's queue takes that for the empty path.
    #[test]
    fn lower_minimum_shows_that_the_path_was_not_empty_and_earlier_rounds_do_not_count() {
        let mut flow = FlowObserver::new(Time::ZERO, Some(MS(28)));
        acks(&mut flow, (1, 500), 29, true);
        assert!(flow.evidence().l4s_rounds > 10, "{:?}", flow.evidence());
        let before = flow.evidence();
        acks(&mut flow, (500, 501), 20, false);
        let after = flow.evidence();
        assert_eq!((after.l4s_rounds, after.marked_rounds), (0, 0));
        assert_eq!((after.rounds, after.packets), (before.rounds, before.packets));
        acks(&mut flow, (501, 900), 29, true);
        assert!(flow.evidence().classic_rounds > 10, "{:?}", flow.evidence());
    }

    #[test]
    fn lower_minimum_within_the_resolution_keeps_earlier_rounds() {
        let mut flow = FlowObserver::new(Time::ZERO, Some(MS(20)));
        acks(&mut flow, (1, 500), 20, true);
        acks(&mut flow, (500, 501), 19, true);
        assert!(flow.evidence().l4s_rounds > 10, "{:?}", flow.evidence());
    }
}
