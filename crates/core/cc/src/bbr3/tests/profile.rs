//! Differences of BBRv2, row by row of the table in `profile.rs`. `state.rs` compares the gains.

use super::script::Script;
use super::*;
use crate::Controller;
use crate::sampler::RateSample;

/// A flow of the given version over a FIFO link of `mbit` and 40 ms.
fn flow_of(profile: Profile, mbit: u64, buffer_millibdp: u64) -> Loop<Bbr3> {
    let cc = match profile {
        Profile::V2 => Bbr3::v2(&settings()),
        Profile::V3 => Bbr3::new(&settings(), false),
    };
    Loop::new(cc, Path::new(Rate::from_mbit(mbit), ms(40), buffer_millibdp), 1)
}

/// A round in Startup that loses `ranges` separate packets and lasts two min_rtt, so it delivers
/// twice the BDP.
fn startup_after_losses(profile: Profile, ranges: usize) -> Script {
    let mut script = Script::new(Deviations::ALL);
    script.bbr.profile = profile;
    script.send(10).wait(ms(40)).ack(10).send(60).wait(ms(80)).ack_and_lose(3, &[false]);
    script.send(20).wait(ms(80)).ack_and_lose(57 - ranges, &[false; 8][1..ranges]).ack(1);
    script
}

#[test]
fn v2_paces_its_first_window_at_two_over_ln_2() {
    let rate = |profile| {
        let mut script = Script::new(Deviations::ALL);
        script.bbr.profile = profile;
        script.send(10).wait(ms(100)).ack(1);
        script.bbr.pacing_rate.bytes_per_sec()
    };
    assert_eq!(rate(Profile::V3), 402_204);
    assert_eq!(rate(Profile::V2), 418_902);
}

#[test]
fn v2_startup_queues_two_thirds_more() {
    let queue = |profile| {
        let mut flow = flow_of(profile, 100, 4_000);
        flow.reach(State::Drain);
        flow.queue_delay().as_nanos() as f64 / 40e6
    };
    assert!((0.9..1.1).contains(&queue(Profile::V3)), "{}", queue(Profile::V3));
    assert!((1.7..2.0).contains(&queue(Profile::V2)), "{}", queue(Profile::V2));
}

/// The sample of each round grows by a quarter but stays below an earlier max_bw of 100 Mbit/s.
#[test]
fn v2_detects_the_plateau_in_max_bw() {
    let is_full = |profile| {
        let mut script = Script::new(Deviations::ALL);
        script.bbr.profile = profile;
        script.send(10).wait(ms(40)).ack(10);
        script.bbr.full_pipe.retract();
        script.bbr.max_bw.update(Rate::from_mbit(100));
        for mbit in [50, 63, 79, 99] {
            let delivery_rate = Rate::from_mbit(mbit);
            script.bbr.check_full_bw_reached(&RateSample { delivery_rate, ..Default::default() });
        }
        script.bbr.full_pipe.reached()
    };
    assert!(is_full(Profile::V2));
    assert!(!is_full(Profile::V3));
}

#[test]
fn six_lost_ranges_end_startup_in_v3_and_eight_in_v2() {
    let state = |profile, ranges| startup_after_losses(profile, ranges).bbr.state;
    assert_ne!(state(Profile::V3, 6), State::Startup);
    assert_eq!(state(Profile::V2, 7), State::Startup);
    assert_ne!(state(Profile::V2, 8), State::Startup);
}

#[test]
fn after_losses_in_startup_v2_bounds_inflight_by_the_bdp_alone() {
    let [v2, v3] = [Profile::V2, Profile::V3].map(|profile| startup_after_losses(profile, 8).bbr);
    let inflight_latest = 49 * u64::from(MSS);
    assert!(v2.bounds.inflight_longterm < inflight_latest, "{:?}", v2.bounds);
    assert!(v3.bounds.inflight_longterm >= inflight_latest, "{:?}", v3.bounds);
}

/// Rounds of Drain after the rate drops to two fifths, and inflight after it in percent of the BDP.
fn overlong_drain(profile: Profile) -> (u64, u64) {
    let mut flow = flow_of(profile, 100, 4_000);
    flow.reach(State::Drain);
    flow.path.steps = std::vec![(flow.now, Rate::from_mbit(40))];
    let round = flow.cc.round.count();
    assert!(flow.run_until(secs(60), |flow| flow.cc.state != State::Drain));
    (flow.cc.round.count() - round, flow.in_flight() * 100 / flow.cc.bdp)
}

#[test]
fn v2_drains_until_one_bdp_is_in_flight() {
    let (rounds, percent) = overlong_drain(Profile::V3);
    assert!(rounds == 3 && percent > 150, "{rounds} rounds, {percent} %");
    let (rounds, percent) = overlong_drain(Profile::V2);
    assert!(rounds > 3 && percent <= 101, "{rounds} rounds, {percent} %");
}

/// Duration of a probe on a path without loss, and inflight at its end in percent of the BDP.
fn probe(flow: &mut Loop<Bbr3>) -> (TimeDelta, u64) {
    flow.reach(State::ProbeBwUp);
    let began = flow.now;
    flow.reach(State::ProbeBwDown);
    (flow.now.since(began), flow.in_flight() * 100 / flow.cc.bdp)
}

#[test]
fn v2_probes_until_a_quarter_bdp_is_queued_and_v3_until_the_rate_is_flat() {
    let (lasted, percent) = probe(&mut flow_of(Profile::V2, 100, 2_000));
    assert!(
        (ms(40)..ms(60)).contains(&lasted) && (124..130).contains(&percent),
        "{lasted:?} {percent} %"
    );
    let (lasted, percent) = probe(&mut flow_of(Profile::V3, 100, 2_000));
    assert!(lasted > ms(120) && percent > 150, "{lasted:?} {percent} %");
}

/// Even with more than 1.25 BDP already in flight, a probe lasts at least min_rtt.
#[test]
fn v2_probes_for_at_least_a_round() {
    let mut flow = flow_of(Profile::V2, 100, 4_000);
    flow.reach(State::ProbeBwUp);
    let (began, min_rtt) = (flow.now, flow.cc.min_rtt.get().expect("measured"));
    let sample = RateSample { prior_in_flight: 10 * flow.cc.bdp, ..Default::default() };
    flow.cc.update_probe_bw_cycle_phase(began + min_rtt, &sample);
    assert_eq!(flow.cc.state, State::ProbeBwUp);
    flow.cc.update_probe_bw_cycle_phase(began + min_rtt + TimeDelta::from_nanos(1), &sample);
    assert_eq!(flow.cc.state, State::ProbeBwDown);
}

#[test]
fn undo_in_v2_widens_the_bounds_and_keeps_the_state() {
    let undone = |profile| {
        let mut flow = flow_of(profile, 100, 100);
        flow.reach(State::Drain);
        let lost = core::mem::take(&mut flow.lost_packets);
        flow.cc.on_spurious(flow.now, &lost);
        (flow.cc.state, flow.cc.full_pipe.reached(), flow.snapshot().inflight_longterm)
    };
    assert_eq!(undone(Profile::V3), (State::Startup, false, None));
    assert_eq!(undone(Profile::V2), (State::Drain, true, None));
}

#[test]
fn probe_repaired_loss_does_not_end_a_probe_in_v2() {
    let state = |profile| {
        let mut flow = flow_of(profile, 10, 2_000);
        flow.reach(State::ProbeBwUp);
        flow.run_for(ms(20));
        flow.repaired = true;
        flow.run_until(secs(60), |flow| !flow.repaired);
        flow.cc.state
    };
    assert_eq!(state(Profile::V3), State::ProbeBwDown);
    assert_eq!(state(Profile::V2), State::ProbeBwUp);
}

#[test]
fn migration_keeps_the_version() {
    let mut bbr = Bbr3::v2(&settings());
    bbr.on_path(secs(1), crate::PathEvent::Migrated);
    assert_eq!(bbr.profile, Profile::V2);
}
