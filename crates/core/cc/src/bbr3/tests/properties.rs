//! Properties that hold on any path. `tests/hosts` shows that no host can break the controller.

extern crate std;

use std::collections::VecDeque;
use std::vec::Vec;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use uncork_units::{Rate, Time, TimeDelta};

use super::super::Bbr3;
use super::super::deviations::Deviations;
use super::super::state::State;
use super::{bbr, ms, secs, settings};
use crate::link::{Loop, MSS, Path};
use crate::round::RoundCounter;
use crate::{Acked, AppState, Controller, Feedback, SentPacket, Settings, Token};

/// A path of at least 50 packets that loses up to 1 % and at some point slows down by up to a
/// factor of ten.
fn any_path() -> impl Strategy<Value = (Path, u64)> {
    let (rtt, buffer, loss) = (20..120_u64, 500..4_000_u64, prop_oneof![Just(0), 0..10_000_u64]);
    (30..60_u64, rtt, buffer, loss, 5..20_u64, 1..=10_u64, any::<u64>()).prop_map(
        |(mbit, rtt, buffer, loss_ppm, step_at, slower, seed)| {
            let rate = Rate::from_mbit(mbit);
            let mut path = Path { loss_ppm, ..Path::new(rate, ms(rtt), buffer) };
            path.steps.push((secs(step_at), Rate::from_mbit(mbit / slower)));
            (path, seed)
        },
    )
}

fn flow_over(path: &Path, seed: u64) -> Loop<Bbr3> {
    let bbr = Bbr3::new(&Settings { seed, ..settings() }, false);
    Loop::new(bbr, path.clone(), seed)
}

/// The path's rate over the last three cycles, at least 15 s.
#[derive(Default)]
struct RecentRates {
    cycle: u64,
    was_down: bool,
    /// The cycle, the time and the rate when it was first seen in that cycle.
    seen: VecDeque<(u64, Time, Rate)>,
}

impl RecentRates {
    fn most(&mut self, flow: &Loop<Bbr3>) -> Rate {
        let is_down = flow.cc.state == State::ProbeBwDown;
        self.cycle += u64::from(is_down && !self.was_down);
        self.was_down = is_down;
        let now = (self.cycle, flow.now, flow.path.rate);
        if self.seen.back().is_none_or(|last| (last.0, last.2) != (now.0, now.2)) {
            self.seen.push_back(now);
        }
        // An entry lasts until the next one begins.
        while let Some((_, until, _)) = self.seen.get(1) {
            let is_old = *until + TimeDelta::from_secs(15) < flow.now;
            if !is_old || self.seen[0].0 + 3 >= self.cycle {
                break;
            }
            self.seen.pop_front();
        }
        self.seen.iter().map(|(_, _, rate)| *rate).fold(Rate::ZERO, Rate::max)
    }
}

/// The longest RTT: full buffer at the lower rate.
fn longest_round(path: &Path) -> TimeDelta {
    path.rtt + path.steps[0].1.time_for(path.buffer)
}

/// Fixed seed, so that only a code change can cause a new failure.
fn config() -> ProptestConfig {
    ProptestConfig { cases: 24, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn max_bw_is_at_most_three_cycles_or_15_seconds_old((path, seed) in any_path()) {
        let mut flow = flow_over(&path, seed);
        let mut recent = RecentRates::default();
        flow.run(secs(60), |flow| {
            let most = recent.most(flow).bytes_per_sec();
            assert!(flow.max_bw() <= most * 103 / 100, "{} > {most}", flow.max_bw());
        });
    }

    /// A flow waits at most 3 s for its next bandwidth probe (§5.3.3.8.2). A ProbeRTT in between
    /// restarts the wait and takes 200 ms and, like REFILL, a few round trips. There is one
    /// ProbeRTT every 5 s: the wait and REFILL's round must fit within that time, or ProbeRTT cuts
    /// the next probe short too.
    #[test]
    fn a_probe_comes_within_two_waits_and_a_probe_rtt((path, seed) in any_path()) {
        let round = longest_round(&path);
        prop_assume!(round < ms(1_500));
        let most = TimeDelta::from_secs(2 * 3) + ms(200) + round.times(6);
        let mut flow = flow_over(&path, seed);
        let mut since = None;
        flow.run(secs(60), |flow| {
            match flow.cc.state {
                State::ProbeBwUp => since = None,
                State::ProbeBwDown if since.is_none() => since = Some(flow.now),
                _ => {}
            }
            let waited = since.map_or(TimeDelta::ZERO, |since| flow.now.since(since));
            assert!(waited <= most, "{waited:?} > {most:?} in {:?}", flow.cc.state);
        });
    }

    /// One ACK for many packets or one ACK per packet: the same bytes are delivered.
    #[test]
    fn totals_do_not_depend_on_ack_bundling(
        bundles in proptest::collection::vec(1..20_usize, 1..30),
    ) {
        let (mut whole, mut split) = (bbr(Deviations::ALL), bbr(Deviations::ALL));
        let mut now = Time::ZERO;
        for n in bundles {
            let tokens: Vec<Token> = (0..n).map(|_| send(&mut whole, now)).collect();
            let twins: Vec<Token> = (0..n).map(|_| send(&mut split, now)).collect();
            now += ms(20);
            acknowledge(&mut whole, now, &tokens);
            for twin in twins {
                acknowledge(&mut split, now, &[twin]);
            }
            prop_assert_eq!(whole.sampler.delivered(), split.sampler.delivered());
            prop_assert_eq!(whole.round.count(), split.round.count());
            prop_assert_eq!(whole.min_rtt.get(), split.min_rtt.get());
        }
    }
}

fn send(bbr: &mut Bbr3, now: Time) -> Token {
    let packet = SentPacket { bytes: MSS, in_flight: 10_000, unacked: 10_000 };
    bbr.on_sent(now, packet, AppState::Backlogged)
}

fn acknowledge(bbr: &mut Bbr3, now: Time, tokens: &[Token]) {
    let acked: Vec<Acked> = tokens.iter().map(|&token| Acked { token, bytes: MSS }).collect();
    let feedback = Feedback {
        acked: &acked,
        lost: &[],
        rtt: None,
        ce_packets: 0,
        in_flight: 10_000,
        unacked: 10_000,
        una_advanced: true,
        oldest_sent: now,
        repaired_by_probe: false,
    };
    bbr.on_feedback(now, &feedback);
}

/// State, window, rate and max_bw at every event of 30 s with loss and a falling rate.
fn trace_from_round(first: u64) -> Vec<(State, u64, Rate, u64)> {
    let path = Path { loss_ppm: 1_000, ..Path::new(Rate::from_mbit(20), ms(40), 1_000) };
    let mut flow = flow_over(&path, 1);
    flow.path.steps.push((secs(10), Rate::from_mbit(5)));
    flow.cc.round = RoundCounter::starting_at(first);
    let mut trace = Vec::new();
    flow.run(secs(30), |flow| {
        trace.push((flow.cc.state, flow.cc.cwnd, flow.cc.pacing_rate, flow.max_bw()));
    });
    assert!(flow.cc.round.count() > first + 300, "{}", flow.cc.round.count());
    trace
}

#[test]
fn decisions_do_not_depend_on_the_round_count() {
    assert!(trace_from_round(u64::from(u32::MAX) - 100) == trace_from_round(0));
}
