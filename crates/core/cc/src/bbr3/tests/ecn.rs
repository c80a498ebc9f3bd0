//! The response in proportion to the share of marked packets (`ecn.rs`), by the rules of Linux.

use super::*;

/// A flow over a link of 100 Mbit/s and 4 ms, far from full.
fn flow_of(profile: Profile) -> Loop<Bbr3> {
    let settings = settings().with_scalable_marks(true);
    let cc = Bbr3::with(&settings, profile, Deviations::ALL);
    Loop::new(cc, Path::new(Rate::from_mbit(100), ms(4), 8_000), 1)
}

impl Loop<Bbr3> {
    /// Runs for `rounds` round trips and marks about `percent` of the packets.
    fn run_marked(&mut self, rounds: u64, percent: u64) {
        let before = self.cc.round.count();
        let mut seen = self.cc.sampler.delivered();
        let mut credit = 0;
        while self.cc.round.count() < before + rounds {
            self.run_for(TimeDelta::from_micros(120));
            let delivered = self.cc.sampler.delivered();
            credit += (delivered - seen) / u64::from(MSS) * percent;
            seen = delivered;
            self.marks = (credit / 100) as u32;
            credit %= 100;
        }
    }

    fn alpha(&self) -> u64 {
        256 - self.cc.cut_for_marks((Rate::MAX, 256 * 1_000)).1 / 1_000
    }
}

#[test]
fn two_rounds_with_half_of_the_packets_marked_end_startup() {
    for profile in [Profile::V2, Profile::V3] {
        let mut flow = flow_of(profile);
        flow.run_marked(2, 40);
        assert_eq!(flow.cc.state, State::Startup, "{profile:?}");
        flow.run_marked(4, 60);
        assert_ne!(flow.cc.state, State::Startup, "{profile:?}");
        assert!(flow.snapshot().inflight_longterm.is_some());
        assert_eq!(flow.stats.lost, 0);
    }
}

/// alpha begins at one and loses a sixteenth per round; the cut is a third of it.
#[test]
fn the_cut_is_a_third_of_the_share_of_marked_packets() {
    let mut flow = flow_of(Profile::V3);
    assert_eq!(flow.alpha(), 85, "a third of 256");
    flow.reach(State::ProbeBwCruise);
    flow.run_marked(200, 0);
    assert_eq!(flow.alpha(), 0);
    flow.run_marked(200, 25);
    let quarter = flow.alpha();
    assert!((15..=25).contains(&quarter), "a third of a quarter is 21: {quarter}");
}

#[test]
fn a_few_marks_cut_by_little_and_a_loss_by_beta() {
    for (profile, cuts_bandwidth) in [(Profile::V2, true), (Profile::V3, false)] {
        let mut flow = flow_of(profile);
        flow.reach(State::ProbeBwCruise);
        flow.run_marked(100, 0);
        flow.reach(State::ProbeBwCruise);
        let window = flow.cc.cwnd;
        flow.marks = 10;
        assert!(flow.run_until(secs(10), |flow| flow.snapshot().inflight_shortterm.is_some()));
        let bounds = flow.snapshot();
        assert!(bounds.inflight_shortterm.expect("marked") > window * 9 / 10, "{profile:?}");
        assert_eq!(bounds.bw_shortterm.is_some(), cuts_bandwidth, "{profile:?}");
        assert_eq!(flow.stats.lost, 0);
    }
}

#[test]
fn a_probe_ends_when_half_of_its_packets_are_marked() {
    for profile in [Profile::V2, Profile::V3] {
        let ends_with = |percent: u64| {
            let mut flow = flow_of(profile);
            flow.reach(State::ProbeBwUp);
            let longterm = flow.cc.bounds.inflight_longterm;
            flow.run_marked(3, percent);
            flow.cc.bounds.inflight_longterm < longterm
        };
        assert!(ends_with(80) && !ends_with(20), "{profile:?}");
    }
}

/// Version 3 probes as soon as a window's worth of data is unmarked; version 2 waits its turn.
#[test]
fn version_3_probes_at_once_when_marks_cease() {
    let rounds = |profile| {
        let mut flow = flow_of(profile);
        flow.reach(State::ProbeBwCruise);
        flow.marks = 1;
        let begun = flow.cc.round.count();
        flow.reach(State::ProbeBwRefill);
        flow.cc.round.count() - begun
    };
    assert!(rounds(Profile::V3) <= 4, "{}", rounds(Profile::V3));
    assert!(rounds(Profile::V2) >= 10, "{}", rounds(Profile::V2));
}

#[test]
fn marks_are_losses_unless_the_host_says_otherwise() {
    let is_on = |cc: Bbr3| cc.ecn.is_on();
    let scalable = settings().with_scalable_marks(true);
    assert!(!is_on(Bbr3::new(&settings(), false)) && !is_on(Bbr3::v2(&settings())));
    assert!(is_on(Bbr3::new(&scalable, false)) && is_on(Bbr3::v2(&scalable)));
    let mut moved = Bbr3::new(&scalable, false);
    moved.start_over(Time::ZERO);
    assert!(is_on(moved), "on a new path, too");
}
