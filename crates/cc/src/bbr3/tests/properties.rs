//! Invariants under hosts that make no sense.

extern crate std;

use std::vec::Vec;

use proptest::prelude::*;
use uncork_units::{Time, TimeDelta};

use super::super::Bbr3;
use crate::{
    Acked, AppState, Controller, Feedback, Lost, PathEvent, RttSample, SentPacket, Settings,
    Timeout, Token,
};

/// A number that is small, ordinary or absurd.
fn any_size() -> impl Strategy<Value = u64> {
    prop_oneof![0..10_u64, 0..1_000_000_u64, Just(u64::MAX), any::<u64>()]
}

fn any_span() -> impl Strategy<Value = TimeDelta> {
    prop_oneof![0..1_000_u64, 0..10_000_000_000_u64, Just(u64::MAX / 4)]
        .prop_map(TimeDelta::from_nanos)
}

#[derive(Clone, Debug)]
enum Step {
    Wait(TimeDelta),
    Send { bytes: u32, in_flight: u64, unacked: u64, drained: bool },
    Feedback { acked: usize, lost: usize, rtt: Option<TimeDelta>, ce: u32, in_flight: u64 },
    Spurious(usize),
    Timeout(Timeout),
    Mtu(u32),
    Migrated,
}

fn any_step() -> impl Strategy<Value = Step> {
    let timeout =
        prop_oneof![Just(Timeout::Probe), Just(Timeout::Retransmission), Just(Timeout::Persistent)];
    let ce = prop_oneof![8 => Just(0_u32), 1 => any::<u32>()];
    prop_oneof![
        4 => any_span().prop_map(Step::Wait),
        8 => (any::<u32>(), any_size(), any_size(), any::<bool>()).prop_map(
            |(bytes, in_flight, unacked, drained)| Step::Send { bytes, in_flight, unacked, drained }
        ),
        8 => (0..8_usize, 0..8_usize, proptest::option::of(any_span()), ce, any_size()).prop_map(
            |(acked, lost, rtt, ce, in_flight)| Step::Feedback { acked, lost, rtt, ce, in_flight }
        ),
        1 => (0..8_usize).prop_map(Step::Spurious),
        1 => timeout.prop_map(Step::Timeout),
        1 => any::<u32>().prop_map(Step::Mtu),
        1 => Just(Step::Migrated),
    ]
}

struct Fuzz {
    bbr: Bbr3,
    now: Time,
    tokens: Vec<Token>,
    mss: u32,
}

impl Fuzz {
    fn new(build: fn(&Settings) -> Bbr3) -> Self {
        let settings = Settings {
            mss: 1_452,
            initial_window: 14_520,
            initial_rtt: None,
            seed: 1,
            now: Time::ZERO,
        };
        Self { bbr: build(&settings), now: Time::ZERO, tokens: Vec::new(), mss: 1_452 }
    }

    /// Tokens come back in any number, again and again.
    fn tokens(&self, n: usize) -> impl Iterator<Item = Token> + '_ {
        self.tokens.iter().rev().take(n).copied()
    }

    fn lost(&self, n: usize) -> Vec<Lost> {
        let bytes = self.mss;
        self.tokens(n).map(|token| Lost { token, bytes, contiguous: n.is_multiple_of(2) }).collect()
    }

    fn feed(&mut self, step: &Step) {
        let Step::Feedback { acked, lost, rtt, ce, in_flight } = *step else {
            return;
        };
        let bytes = self.mss;
        let acked: Vec<Acked> = self.tokens(acked).map(|token| Acked { token, bytes }).collect();
        let lost = self.lost(lost);
        let rtt = rtt.map(|latest| RttSample { latest, smoothed: latest, min: latest });
        let feedback = Feedback {
            acked: &acked,
            lost: &lost,
            rtt,
            ce_packets: ce,
            in_flight,
            unacked: in_flight,
            una_advanced: true,
            oldest_sent: Time::NEVER,
            repaired_by_probe: ce % 2 == 1,
        };
        self.bbr.on_feedback(self.now, &feedback);
    }

    fn apply(&mut self, step: &Step) {
        match *step {
            Step::Wait(span) => self.now += span,
            Step::Send { bytes, in_flight, unacked, drained } => {
                let app = if drained { AppState::Drained } else { AppState::Backlogged };
                let packet = SentPacket { bytes, in_flight, unacked };
                self.tokens.push(self.bbr.on_sent(self.now, packet, app));
            }
            Step::Feedback { .. } => self.feed(step),
            Step::Spurious(n) => self.bbr.on_spurious(self.now, &self.lost(n)),
            Step::Timeout(timeout) => self.bbr.on_timeout(self.now, timeout),
            Step::Mtu(mss) => {
                self.mss = mss;
                self.bbr.on_path(self.now, PathEvent::MtuChanged { mss });
            }
            Step::Migrated => self.bbr.on_path(self.now, PathEvent::Migrated),
        }
    }

    fn check(&self) {
        let control = self.bbr.control();
        let mss = u64::from(self.mss.max(1));
        assert!(control.pacing_rate.is_some_and(|rate| !rate.is_zero()));
        assert!(control.send_quantum >= 2 * mss);
        assert!(control.cwnd >= mss.min(14_520), "{control:?}");
        let snapshot = self.bbr.snapshot();
        assert!(snapshot.bw <= snapshot.max_bw);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// No input panics (transitions are asserted), stops the sender or lets it run unpaced.
    //= bbr-06 5.1.1-1 5.5.10.3-9 test
    #[test]
    fn any_host_leaves_the_controller_usable(
        which in 0..3_usize,
        steps in proptest::collection::vec(any_step(), 1..200),
    ) {
        let build: [fn(&Settings) -> Bbr3; 3] =
            [|settings| Bbr3::new(settings, false), |settings| Bbr3::new(settings, true), Bbr3::v2];
        let mut fuzz = Fuzz::new(build[which]);
        for step in &steps {
            fuzz.apply(step);
            fuzz.check();
        }
    }
}
