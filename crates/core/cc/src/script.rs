//! A host for tests that script events packet by packet.
//!
//! Every packet is one segment of [`MSS`] bytes. Counts are in segments.

extern crate std;

use std::collections::VecDeque;
use std::vec::Vec;

use uncork_units::{Time, TimeDelta};

use crate::controller::{Controller, Settings};
use crate::event::{Acked, AppState, Feedback, Lost, RttSample, SentPacket, Timeout, Token};

/// Not a divisor of any other number used in the tests.
pub(crate) const MSS: u32 = 1_447;

/// The bytes of `n` segments.
pub(crate) const fn segments(n: u64) -> u64 {
    n * MSS as u64
}

/// Settings of a connection at time zero with a window of `initial_window` segments.
pub(crate) fn settings(initial_window: u64) -> Settings {
    Settings {
        mss: MSS,
        initial_window: segments(initial_window),
        initial_rtt: None,
        paced: false,
        segmentation_offload: false,
        scalable_marks: false,
        clock_granularity: TimeDelta::ZERO,
        inherited: None,
        seed: 1,
        now: Time::ZERO,
    }
}

pub(crate) struct Host<C> {
    pub(crate) cc: C,
    pub(crate) now: Time,
    /// The round-trip time of the next samples.
    pub(crate) rtt: TimeDelta,
    /// The part of [`Self::rtt`] that is queueing: the smallest sample of the connection is smaller by it.
    pub(crate) queue: TimeDelta,
    in_flight: VecDeque<Token>,
    /// Declared lost and not yet retransmitted.
    lost: VecDeque<Token>,
}

/// Contents of a feedback, apart from the packets acknowledged.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Report {
    /// This many of the oldest packets in flight are declared lost.
    pub(crate) lost: usize,
    /// This many of the packets after them are acknowledged.
    pub(crate) acked: usize,
    pub(crate) ce_packets: u32,
    pub(crate) una_advanced: bool,
    pub(crate) repaired_by_probe: bool,
}

impl<C: Controller> Host<C> {
    /// A host over a path with an RTT of 100 ms.
    pub(crate) fn new(cc: C) -> Self {
        let rtt = TimeDelta::from_millis(100);
        Self {
            cc,
            now: Time::ZERO,
            rtt,
            queue: TimeDelta::ZERO,
            in_flight: VecDeque::new(),
            lost: VecDeque::new(),
        }
    }

    /// The window in bytes.
    pub(crate) fn cwnd(&self) -> u64 {
        self.cc.control().cwnd
    }

    /// Segments in flight.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    pub(crate) fn advance(&mut self, span: TimeDelta) {
        self.now += span;
    }

    pub(crate) fn send(&mut self) {
        self.send_as(AppState::Backlogged);
    }

    pub(crate) fn send_as(&mut self, app: AppState) {
        let in_flight = segments(self.in_flight.len() as u64 + 1);
        self.lost.pop_front();
        let packet = SentPacket {
            bytes: MSS,
            in_flight,
            unacked: in_flight + segments(self.lost.len() as u64),
        };
        let token = self.cc.on_sent(self.now, packet, app);
        self.in_flight.push_back(token);
    }

    /// Sends what the window allows and returns the number of segments sent.
    pub(crate) fn fill(&mut self) -> usize {
        let before = self.in_flight();
        while segments(self.in_flight() as u64 + 1) <= self.cwnd() {
            self.send();
        }
        self.in_flight() - before
    }

    pub(crate) fn feedback(&mut self, report: Report) {
        let lost: Vec<Token> = self.in_flight.drain(..report.lost).collect();
        let acked: Vec<Token> = self.in_flight.drain(..report.acked).collect();
        self.lost.extend(&lost);
        let in_flight = segments(self.in_flight.len() as u64);
        let rtt = RttSample { latest: self.rtt, smoothed: self.rtt, min: self.rtt - self.queue };
        let acked: Vec<Acked> =
            acked.into_iter().map(|token| Acked { token, bytes: MSS }).collect();
        let feedback = Feedback {
            acked: &acked,
            lost: &as_lost(lost.iter()),
            rtt: (!acked.is_empty()).then_some(rtt),
            ce_packets: report.ce_packets,
            in_flight,
            unacked: in_flight + segments(self.lost.len() as u64),
            una_advanced: report.una_advanced,
            oldest_sent: self.in_flight.front().map_or(Time::NEVER, Token::send_time),
            repaired_by_probe: report.repaired_by_probe,
        };
        self.cc.on_feedback(self.now, &feedback);
    }

    /// The oldest `acked` packets in flight are acknowledged.
    pub(crate) fn ack(&mut self, acked: usize) {
        self.feedback(Report { acked, una_advanced: true, ..Report::default() });
    }

    /// The oldest `lost` packets in flight are lost; the one after them has arrived.
    pub(crate) fn lose(&mut self, lost: usize) {
        self.feedback(Report { lost, acked: 1, ..Report::default() });
    }

    /// Fills the window, loses one packet, and continues until the loss is repaired and the window
    /// is full again.
    pub(crate) fn lose_one_and_recover(&mut self) {
        self.fill();
        self.advance(self.rtt);
        self.lose(1);
        self.advance(self.rtt);
        while self.cc.snapshot().in_recovery {
            self.fill();
            self.ack(1);
        }
        self.fill();
    }

    /// A round trip in which the window is filled and every packet is acknowledged by its own ACK,
    /// each releasing new packets.
    pub(crate) fn round(&mut self) {
        self.spread_round(TimeDelta::ZERO);
    }

    /// The same with `spacing` after each ACK.
    pub(crate) fn spread_round(&mut self, spacing: TimeDelta) {
        self.fill();
        self.advance(self.rtt);
        for _ in 0..self.in_flight() {
            self.ack(1);
            self.fill();
            self.advance(spacing);
        }
    }

    /// A retransmission timeout: everything in flight is presumed lost. Returns those packets.
    pub(crate) fn time_out(&mut self) -> Vec<Lost> {
        self.cc.on_timeout(self.now, Timeout::Retransmission);
        let lost = as_lost(self.in_flight.iter());
        self.feedback(Report { lost: self.in_flight(), ..Report::default() });
        lost
    }

    /// Packets declared lost and not retransmitted.
    pub(crate) fn missing(&self) -> Vec<Lost> {
        as_lost(self.lost.iter())
    }
}

fn as_lost<'a>(tokens: impl Iterator<Item = &'a Token>) -> Vec<Lost> {
    tokens.map(|&token| Lost { token, bytes: MSS, contiguous: false }).collect()
}
