//! The response function: the mean window that an algorithm settles at when one packet in n is
//! lost, on a path without a queue.
//!
//! RFC 9438 §5.1 tabulates it for CUBIC, RFC 5681's window is the square root of 3/(2p).

use std::collections::VecDeque;

use uncork_cc::{
    Acked, AnyController, AppState, CcSpec, Controller, Feedback, Lost, RttSample, SentPacket,
    Settings, Token,
};
use uncork_units::{Time, TimeDelta};

const MSS: u32 = 1448;
/// Packets delivered after a lost one until it is declared lost.
const REORDERING: u32 = 3;

/// A sender with endless data over a path of fixed RTT and infinite rate that loses every `n`-th
/// packet.
struct Loop {
    controller: AnyController,
    rtt: TimeDelta,
    n: u64,
    now: Time,
    sent: u64,
    delivered: u64,
    in_flight: u64,
    flight: VecDeque<Packet>,
    /// The packet lost last, and how many were delivered since.
    missing: Option<(Token, u32)>,
    /// SND.UNA cannot advance before its retransmission is acknowledged.
    hole_until: Time,
}

struct Packet {
    token: Token,
    arrives: Time,
    is_lost: bool,
}

impl Loop {
    fn new(cc: &str, rtt: TimeDelta, n: u64) -> Self {
        let settings = Settings {
            mss: MSS,
            initial_window: 10 * u64::from(MSS),
            initial_rtt: None,
            seed: 1,
            now: Time::ZERO,
        };
        let spec: CcSpec = cc.parse().expect("a known controller");
        Self {
            controller: spec.build(&settings),
            rtt,
            n,
            now: Time::ZERO,
            sent: 0,
            delivered: 0,
            in_flight: 0,
            flight: VecDeque::new(),
            missing: None,
            hole_until: Time::ZERO,
        }
    }

    fn fill_window(&mut self) {
        while self.in_flight + u64::from(MSS) <= self.controller.control().cwnd {
            self.in_flight += u64::from(MSS);
            self.sent += 1;
            let packet =
                SentPacket { bytes: MSS, in_flight: self.in_flight, unacked: self.in_flight };
            let token = self.controller.on_sent(self.now, packet, AppState::Backlogged);
            let is_lost = self.sent.is_multiple_of(self.n);
            self.flight.push_back(Packet { token, arrives: self.now + self.rtt, is_lost });
        }
    }

    /// The next packet meets its fate; the ACK, if there is one, is handled.
    fn step(&mut self) {
        self.fill_window();
        let packet = self.flight.pop_front().expect("the window holds a packet");
        self.now = packet.arrives;
        if packet.is_lost {
            self.missing = Some((packet.token, 0));
            self.hole_until = Time::NEVER;
            return;
        }
        let acked = [Acked { token: packet.token, bytes: MSS }];
        let lost: Vec<Lost> = self.newly_lost().into_iter().collect();
        self.delivered += 1;
        self.in_flight -= u64::from(MSS) * (1 + lost.len() as u64);
        self.controller.on_feedback(
            self.now,
            &Feedback {
                acked: &acked,
                lost: &lost,
                rtt: Some(RttSample { latest: self.rtt, smoothed: self.rtt, min: self.rtt }),
                ce_packets: 0,
                in_flight: self.in_flight,
                unacked: self.in_flight + u64::from(MSS) * lost.len() as u64,
                una_advanced: self.now >= self.hole_until,
                oldest_sent: Time::NEVER,
                repaired_by_probe: false,
            },
        );
    }

    fn newly_lost(&mut self) -> Option<Lost> {
        let (token, delivered_since) = self.missing.as_mut()?;
        *delivered_since += 1;
        if *delivered_since < REORDERING {
            return None;
        }
        let lost = Lost { token: *token, bytes: MSS, contiguous: false };
        self.missing = None;
        self.hole_until = self.now + self.rtt;
        Some(lost)
    }

    fn run_losses(&mut self, losses: u64) {
        let end = self.sent + losses * self.n;
        while self.sent < end {
            self.step();
        }
    }
}

/// Packets delivered per round trip, from the 80th loss to the 120th.
fn mean_window(cc: &str, rtt_ms: u64, n: u64) -> f64 {
    let rtt = TimeDelta::from_millis(rtt_ms);
    let mut model = Loop::new(cc, rtt, n);
    model.run_losses(80);
    let (start, delivered) = (model.now, model.delivered);
    model.run_losses(40);
    let rounds = model.now.since(start).as_secs_f64() / rtt.as_secs_f64();
    (model.delivered - delivered) as f64 / rounds
}

fn assert_near(cc: &str, rtt_ms: u64, n: u64, expected: f64, tolerance: f64) {
    let mean = mean_window(cc, rtt_ms, n);
    println!("{cc} RTT {rtt_ms} ms, p = 1/{n}: {mean:.1} segments, expected {expected:.1}");
    let error = mean / expected - 1.0;
    assert!(error.abs() <= tolerance, "{mean:.1} segments, expected {expected:.1}");
}

//= rfc9438 5.1-1 test
#[test]
fn cubic_at_100_ms() {
    assert_near("cubic", 100, 100, 12.0, 0.15);
    assert_near("cubic", 100, 1_000, 38.0, 0.10);
    assert_near("cubic", 100, 10_000, 187.0, 0.10);
    assert_near("cubic", 100, 100_000, 1054.0, 0.10);
}

//= rfc9438 4.3-1 test
#[test]
fn cubic_at_10_ms_is_reno_until_the_window_is_large() {
    assert_near("cubic", 10, 100, 12.0, 0.15);
    assert_near("cubic", 10, 1_000, 38.0, 0.10);
    assert_near("cubic", 10, 10_000, 120.0, 0.10);
    assert_near("cubic", 10, 100_000, 379.0, 0.10);
}

#[test]
fn reno_is_the_square_root_law_whatever_the_rtt() {
    for (rtt_ms, n, tolerance) in [(100, 100, 0.15), (100, 1_000, 0.10), (10, 10_000, 0.05)] {
        assert_near("reno", rtt_ms, n, (1.5 * n as f64).sqrt(), tolerance);
    }
}
