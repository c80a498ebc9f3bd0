//! Which of the draft's rules reduce BBRv3's throughput under random loss, and the effect of the
//! option `loss_floor`.
//!
//! Figures: `cargo test -p uncork-cc random_loss -- --nocapture`.

use std::println;

use super::super::bounds::UNBOUNDED;
use super::*;
use crate::event::{AppState, Feedback, Lost, PathEvent, SentPacket, Timeout, Token};
use crate::{AckFrequency, Control, Controller, Snapshot};

/// The rules that make BBRv3 slow down on loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// §5.5.10.3: each round with loss lowers the short-term bounds.
    ShortTerm,
    /// §5.5.10.2: a flight that lost more than 2 % ends the probe and sets the long-term bound.
    LongTerm,
    /// §5.3.1.3: six ranges and 2 % lost in a round end Startup.
    StartupExit,
}

use Rule::{LongTerm, ShortTerm, StartupExit};

/// BBRv3 with some of its rules disabled.
struct Without {
    bbr: Bbr3,
    rules: &'static [Rule],
}

impl Controller for Without {
    fn on_sent(&mut self, now: Time, packet: SentPacket, app: AppState) -> Token {
        self.bbr.on_sent(now, packet, app)
    }

    fn on_feedback(&mut self, now: Time, feedback: &Feedback<'_>) {
        let Self { bbr, rules } = self;
        if rules.contains(&LongTerm) {
            bbr.cycle.is_bw_probe_sample = false;
            bbr.bounds.inflight_longterm = UNBOUNDED;
        }
        if rules.contains(&StartupExit) {
            bbr.signals.lost_ranges = 0;
        }
        bbr.on_feedback(now, feedback);
        if rules.contains(&ShortTerm) {
            bbr.signals.is_loss_in_round = false;
        }
    }

    fn on_spurious(&mut self, now: Time, packets: &[Lost]) {
        self.bbr.on_spurious(now, packets);
    }

    fn on_timeout(&mut self, now: Time, timeout: Timeout) {
        self.bbr.on_timeout(now, timeout);
    }

    fn on_path(&mut self, now: Time, event: PathEvent) {
        self.bbr.on_path(now, event);
    }

    fn control(&self) -> Control {
        self.bbr.control()
    }

    fn ack_frequency(&self) -> Option<AckFrequency> {
        self.bbr.ack_frequency()
    }

    fn snapshot(&self) -> Snapshot {
        self.bbr.snapshot()
    }
}

/// Link utilization in percent from 5 s to 20 s, mean of three seeds.
fn percent_used(cc: impl Fn() -> Without, mbit: u64, loss_ppm: u64) -> u64 {
    let used = |seed| {
        let mut path = Path::new(Rate::from_mbit(mbit), ms(40), 1_000);
        path.loss_ppm = loss_ppm;
        let all = path.rate.bytes_in(TimeDelta::from_secs(15));
        let mut flow = Loop::new(cc(), path, seed);
        flow.run(secs(5), |_| {});
        let before = flow.stats.acked_bytes;
        flow.run(secs(20), |_| {});
        (flow.stats.acked_bytes - before) * 100 / all
    };
    (1..=3).map(used).sum::<u64>() / 3
}

fn draft_without(rules: &'static [Rule]) -> impl Fn() -> Without {
    move || Without { bbr: bbr(Deviations::ALL), rules }
}

#[test]
fn each_loss_rule_contributes_to_the_throughput_drop() {
    const VARIANTS: [(&str, &[Rule]); 6] = [
        ("all rules", &[]),
        ("without short-term bounds", &[ShortTerm]),
        ("without the long-term bound", &[LongTerm]),
        ("without Startup's exit", &[StartupExit]),
        ("without either bound", &[ShortTerm, LongTerm]),
        ("without any", &[ShortTerm, LongTerm, StartupExit]),
    ];
    const LOSS_PPM: [u64; 5] = [0, 5_000, 10_000, 20_000, 30_000];
    let mut used = [[[0; LOSS_PPM.len()]; VARIANTS.len()]; 2];
    for (table, mbit) in used.iter_mut().zip([10, 100]) {
        for (row, (name, rules)) in table.iter_mut().zip(VARIANTS) {
            *row = LOSS_PPM.map(|loss| percent_used(draft_without(rules), mbit, loss));
            println!("{mbit:3} Mbit/s, 40 ms, {name:28} {row:2?} % used at 0, 0.5, 1, 2, 3 % loss");
        }
    }
    for [all, short, long, startup, bounds, _] in used {
        assert!(all[4] * 2 < bounds[4] && bounds[4] >= 90, "at 3 % the two bounds cost half");
        assert!(short[4] < 75 && long[4] < 90, "and each bound alone costs a lot");
        assert!(startup[4] < 50, "Startup's loss exit contributes little");
    }
    let [[_, small_short, small_long, ..], [_, large_short, large_long, ..]] = used;
    assert!(
        small_long[3] > small_short[3],
        "with one loss being 3 %, the long-term bound costs more"
    );
    assert!(
        large_short[2] > large_long[2],
        "with three losses being 1 %, the short-term bounds cost more"
    );
}

#[test]
fn loss_floor_keeps_most_of_the_link_used_up_to_three_percent_loss() {
    for mbit in [10, 100] {
        let floor = || Without { bbr: bbr(Deviations::ALL).with_loss_floor(true), rules: &[] };
        let none = draft_without(&[ShortTerm, LongTerm, StartupExit]);
        for loss_ppm in [5_000, 10_000, 20_000, 30_000] {
            let (with, free) =
                (percent_used(floor, mbit, loss_ppm), percent_used(&none, mbit, loss_ppm));
            println!("{mbit:3} Mbit/s, {loss_ppm:5} ppm: {with} %, without any rule {free} %");
            assert!(with + 5 >= free, "{mbit} Mbit/s, {loss_ppm} ppm: {with} %, {free} %");
        }
    }
}

/// If packets are lost only to queue overflow, the option has no effect.
#[test]
fn without_baseline_loss_the_option_has_no_effect() {
    for buffer in [100, 500, 2_000] {
        let mut draft = flow(50, buffer, Deviations::ALL);
        let mut floor = flow(50, buffer, Deviations::ALL);
        // Startup's own overflow is the exception: it has no floor yet.
        draft.reach(State::ProbeBwCruise);
        floor.reach(State::ProbeBwCruise);
        floor.cc = floor.cc.clone().with_loss_floor(true);
        for _ in 0..2_000 {
            draft.run_for(ms(10));
            floor.run_for(ms(10));
            assert_eq!(draft.snapshot(), floor.snapshot(), "{buffer}");
        }
        assert_eq!(draft.stats.lost, floor.stats.lost);
    }
}

/// Each probing cycle measures the baseline loss again, so the floor falls within a few cycles
/// after the path stops losing packets.
#[test]
fn floor_follows_the_path() {
    let mut flow = flow(50, 2_000, Deviations::ALL);
    flow.cc = flow.cc.clone().with_loss_floor(true);
    flow.path.loss_ppm = 20_000;
    flow.run(secs(20), |_| {});
    assert!(flow.cc.loss_floor.allowance(1_000, false) > 20);
    flow.path.loss_ppm = 0;
    flow.run(secs(50), |_| {});
    assert!(flow.cc.loss_floor.allowance(1_000, false) < 3);
}

/// A buffer that shrinks to a tenth overflows in every probe. That is not baseline loss, although
/// the last losses of a probe are reported after its queue has drained.
#[test]
fn probe_overflow_is_not_baseline_loss() {
    let mut flow = flow(50, 2_000, Deviations::ALL);
    flow.cc = flow.cc.clone().with_loss_floor(true);
    flow.run(secs(20), |_| {});
    flow.path.buffer /= 20;
    let mut most = 0;
    flow.run(secs(60), |flow| most = most.max(flow.cc.loss_floor.allowance(1_000, false)));
    assert!(flow.stats.lost > 100, "{}", flow.stats.lost);
    assert!(most <= 1, "{most} of 1000 packets: at most one loss among all of these");
}

#[test]
fn probe_repaired_loss_counts_towards_the_floor() {
    let mut flow = flow(50, 2_000, Deviations::ALL);
    flow.cc = flow.cc.clone().with_loss_floor(true);
    flow.reach(State::ProbeBwCruise);
    flow.run_for(ms(200));
    for _ in 0..20 {
        flow.repaired = true;
        flow.run_for(ms(20));
    }
    assert!(flow.cc.loss_floor.allowance(1_000, false) >= 10);
}

#[test]
fn ce_mark_is_congestion_at_any_floor() {
    let mut flow = flow(50, 2_000, Deviations::ALL);
    flow.cc = flow.cc.clone().with_loss_floor(true);
    flow.path.loss_ppm = 20_000;
    flow.run(secs(20), |_| {});
    flow.reach(State::ProbeBwCruise);
    assert_eq!(flow.cc.bounds.bw_shortterm, Rate::MAX, "the losses are within the floor");
    flow.marks = 1;
    flow.run_for(ms(120));
    assert_ne!(flow.cc.bounds.bw_shortterm, Rate::MAX);
}
