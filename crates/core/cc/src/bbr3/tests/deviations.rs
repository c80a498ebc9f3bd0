//! The defect that each deviation from the draft fixes. The letters refer to `DEVIATIONS.md`.

use super::script::Script;
use super::*;
use crate::bbr3::ack_aggregation::AckArrival;
use crate::bbr3::deviations::Deviation;
use crate::{Controller, PathEvent};

fn without(deviation: Deviation) -> Deviations {
    Deviations::ALL.without(deviation)
}

/// State, window and rate at every event of the first 10 s.
fn trace(buffer_millibdp: u64, deviations: Deviations) -> std::vec::Vec<(State, u64, Rate)> {
    // With the handshake's RTT; otherwise (i) has an effect.
    let settings = Settings { initial_rtt: Some(ms(40)), ..settings() };
    let path = Path::new(Rate::from_mbit(50), ms(40), buffer_millibdp);
    let mut flow = Loop::new(Bbr3::with(&settings, Profile::V3, deviations), path, 1);
    let mut trace = std::vec::Vec::new();
    flow.run(secs(10), |flow| trace.push((flow.cc.state, flow.cc.cwnd, flow.cc.pacing_rate)));
    trace
}

#[test]
//= bbr-06 5.1-1 test
fn without_loss_every_decision_matches_the_draft() {
    assert!(trace(2_000, Deviations::ALL) == trace(2_000, Deviations::NONE));
    assert!(trace(200, Deviations::ALL) != trace(200, Deviations::NONE));
}

#[test]
//= bbr-06 2.3-2 2.3-3 test
fn a_startup_sees_loss_in_a_shallow_buffer() {
    let lost_by_drain = |deviations| {
        let mut flow = flow(100, 100, deviations);
        flow.reach(State::Drain);
        flow.stats.lost
    };
    assert!(lost_by_drain(Deviations::ALL) < 350);
    let blind = lost_by_drain(without(Deviation::AckFlight));
    assert!(blind > 1_000, "{blind}");
}

/// A flow in ProbeBW_UP. One ACK, for a packet that is not application-limited, also reports the
/// loss of a packet that is.
fn acked_sample_after_a_loss(deviations: Deviations) -> (crate::sampler::RateSample, Loop<Bbr3>) {
    let mut flow = flow(100, 2_000, deviations);
    flow.reach(State::ProbeBwUp);
    let mut limited = flow.cc.clone();
    limited.sampler.mark_app_limited();
    let packet = crate::SentPacket { bytes: MSS, in_flight: 30_000, unacked: 30_000 };
    let token = limited.sampler.on_sent(flow.now, packet, crate::AppState::Backlogged, None);
    let lost = [crate::Lost { token, bytes: MSS, contiguous: false }];
    let feedback = crate::Feedback {
        acked: &[],
        lost: &lost,
        rtt: None,
        ce_packets: 0,
        in_flight: flow.in_flight(),
        unacked: flow.in_flight(),
        una_advanced: false,
        oldest_sent: Time::NEVER,
        repaired_by_probe: false,
    };
    let mut sample = flow.cc.sampler.on_feedback(flow.now, &feedback);
    sample.tx_in_flight = 400_000;
    flow.cc.handle_losses(flow.now, &feedback, &mut sample);
    (sample, flow)
}

#[test]
//= bbr-06 5.5.10.2-8 test
fn b_a_lost_packet_does_not_change_the_sample_of_the_ack() {
    let (sample, flow) = acked_sample_after_a_loss(Deviations::ALL);
    assert_eq!((sample.tx_in_flight, sample.is_app_limited), (400_000, false));
    assert_eq!(flow.cc.state, State::ProbeBwDown);
    let (sample, _) = acked_sample_after_a_loss(without(Deviation::LossSample));
    assert!(sample.tx_in_flight <= 30_000 && sample.is_app_limited);
}

/// A probe without growth in which each ACK also reports the loss of an application-limited packet:
/// one of two hundred, which is safe. Ends with the probe, or after four rounds.
fn state_after_a_plateau_with_losses(deviations: Deviations) -> State {
    let mut script = Script::new(deviations);
    probe_without_growth(&mut script);
    for _ in 0..8 {
        if script.bbr.state == State::ProbeBwUp {
            script.wait(ms(40)).ack_and_lose(99, &[false]).send_limited().send(99);
        }
    }
    script.bbr.state
}

/// In ProbeBW_UP, with 200 packets in flight.
pub(super) fn probe_without_growth(script: &mut Script) {
    script.send(10).wait(ms(40)).ack(10).send(100).send_limited().send(99).wait(ms(40)).ack(100);
    script.send_limited().send(99);
    script.bbr.full_pipe.declare_full();
    script.bbr.full_pipe.restart(Rate::from_mbit(100));
    script.bbr.state = State::ProbeBwUp;
    script.bbr.cycle.is_bw_probe_sample = true;
}

#[test]
fn b_a_lost_packet_does_not_make_the_round_application_limited() {
    let state = state_after_a_plateau_with_losses(Deviations::ALL);
    assert_eq!(state, State::ProbeBwDown);
    let state = state_after_a_plateau_with_losses(without(Deviation::LossSample));
    assert_eq!(state, State::ProbeBwUp, "the plateau is not detected");
}

/// Losses in Startup: the first at the start of a loss round and the others during it, up to the
/// first ACK of a packet sent after them.
fn startup_until_the_last_ack(contiguity: &[bool]) -> Script {
    let (first, rest) = contiguity.split_at(1);
    let mut script = Script::new(Deviations::ALL);
    script.send(10).wait(ms(40)).ack(10).send(60).wait(ms(40)).ack_and_lose(3, first);
    script.send(20).wait(ms(40)).ack_and_lose(56 - rest.len(), rest);
    assert_eq!(script.bbr.state, State::Startup, "the round is not over");
    script
}

fn startup_after_losses(contiguity: &[bool]) -> Script {
    let mut script = startup_until_the_last_ack(contiguity);
    script.ack(1);
    script
}

#[test]
//= bbr-06 5.3.1.3-1 5.3.1.3-6 5.5.10.2-6 test
fn g_six_ranges_in_a_full_round_of_recovery_end_startup() {
    let script = startup_after_losses(&[false; 6]);
    assert_ne!(script.bbr.state, State::Startup);
    assert!(script.bbr.full_pipe.is_full_now());
    let longterm = script.bbr.bounds.inflight_longterm;
    assert!(longterm >= script.bbr.bdp.max(50 * u64::from(MSS)), "{longterm}");
}

#[test]
fn g_losses_count_when_the_same_ack_reveals_the_plateau() {
    let mut script = startup_until_the_last_ack(&[false; 6]);
    for mbit in [1_000, 1, 1] {
        script.bbr.full_pipe.on_round(Rate::from_mbit(mbit));
    }
    script.ack(1);
    assert_ne!(script.bbr.state, State::Startup);
    assert_ne!(script.bbr.bounds.inflight_longterm, u64::MAX);
}

#[test]
//= bbr-06 5.3.1.3-3 test
fn g_five_ranges_do_not_end_startup() {
    assert_eq!(startup_after_losses(&[false; 5]).bbr.state, State::Startup);
}

/// Six ranges in a full round of recovery, in a flight so large that they are less than 2 % of it.
#[test]
//= bbr-06 5.3.1.3-2 test
fn g_six_ranges_below_two_percent_do_not_end_startup() {
    let mut script = Script::new(Deviations::ALL);
    script.send(10).wait(ms(40)).ack(10).send(400).wait(ms(40)).ack_and_lose(3, &[false]);
    script.send(20).wait(ms(40)).ack_and_lose(391, &[false; 5]).ack(1);
    assert!(script.bbr.signals.loss_round_start, "the round is over");
    assert_eq!(script.bbr.state, State::Startup);
}

#[test]
//= bbr-06 5.3.1.3-3 test
fn g_one_long_range_does_not_end_startup() {
    let mut contiguity = [true; 20];
    contiguity[0] = false;
    assert_eq!(startup_after_losses(&contiguity).bbr.state, State::Startup);
}

/// Bounds before and after a spurious episode of many losses that ended a probe, and the final
/// state.
fn undo_of_many_losses(deviations: Deviations) -> (u64, u64, State) {
    let mut flow = flow(100, 400, deviations);
    flow.run(secs(4), |_| {});
    flow.reach(State::ProbeBwUp);
    flow.run_for(ms(10));
    let before = flow.cc.bounds.inflight_longterm;
    flow.lost_packets.clear();
    flow.path.loss_ppm = 200_000;
    flow.reach(State::ProbeBwDown);
    flow.run_for(ms(5));
    let lost = core::mem::take(&mut flow.lost_packets);
    assert!(lost.len() > 3 && flow.cc.signals.is_loss_in_round);
    flow.cc.on_spurious(flow.now, &lost);
    assert!(!flow.cc.signals.is_loss_in_round);
    (before, flow.cc.bounds.inflight_longterm, flow.cc.state)
}

#[test]
//= bbr-06 5.5.10.2-7 5.5.11.1-1 5.6.4.4-2 test
fn h_undo_restores_the_state_before_the_episode() {
    let (before, after, state) = undo_of_many_losses(Deviations::ALL);
    assert!(after >= before, "{after} < {before}");
    assert_eq!(state, State::ProbeBwRefill);
    let (before, after, state) = undo_of_many_losses(without(Deviation::UndoPerEpisode));
    assert!(after < before, "{after} >= {before}");
    assert_eq!(state, State::ProbeBwDown);
}

fn pacing_after_first_rtt(deviations: Deviations) -> u64 {
    let mut script = Script::new(deviations);
    script.send(10).wait(ms(100)).ack(1);
    script.bbr.pacing_rate.bytes_per_sec()
}

#[test]
//= bbr-06 5.6.2-2 test
fn i_the_first_rtt_sample_replaces_the_nominal_pacing_rate() {
    // 2.77 * 10 packets over 100 ms, or over the nominal 1 ms.
    assert_eq!(pacing_after_first_rtt(Deviations::ALL), 402_204);
    assert_eq!(pacing_after_first_rtt(without(Deviation::PacingFromFirstRtt)), 40_220_400);
}

/// Three packets are each acknowledged a millisecond after they left: the ACKs belong to an earlier
/// transmission of the same data.
fn state_after_unreliable_samples(deviations: Deviations) -> State {
    let mut script = Script::new(deviations);
    script.send(10).wait(ms(40)).ack(10);
    script.measures_rtt = false;
    for _ in 0..3 {
        script.send(1).wait(ms(1)).ack(1);
    }
    script.bbr.state
}

#[test]
//= bbr-06 4.1.2.3-7 test
fn j_unreliable_samples_are_not_a_plateau() {
    assert_eq!(state_after_unreliable_samples(Deviations::ALL), State::Startup);
    let state = state_after_unreliable_samples(without(Deviation::SkipInvalid));
    assert_ne!(state, State::Startup);
}

/// The latest signals before and after the ACK of an earlier transmission, a millisecond after the
/// packet left.
fn signals_around_an_unreliable_sample(deviations: Deviations) -> [(Rate, u64); 2] {
    let mut script = Script::new(deviations);
    script.send(10).wait(ms(40)).ack(10).send(10).wait(ms(40)).ack(10).send(10).wait(ms(40)).ack(9);
    let signals = |script: &Script| {
        let signals = &script.bbr.signals;
        (signals.bw_latest, signals.inflight_latest)
    };
    let before = signals(&script);
    script.measures_rtt = false;
    script.ack(1).send(1).wait(ms(1)).ack(1);
    [before, signals(&script)]
}

/// The zero of such a sample would count as the delivery of the whole round, and the short-term
/// bounds would fall to it.
#[test]
//= bbr-06 5.5.5-1 test
fn j_unreliable_samples_do_not_change_the_latest_signals() {
    let [before, after] = signals_around_an_unreliable_sample(Deviations::ALL);
    assert!(!before.0.is_zero() && after.0 >= before.0 && after.1 >= before.1);
    let [before, after] = signals_around_an_unreliable_sample(without(Deviation::SkipInvalid));
    assert!(!before.0.is_zero() && after.0.is_zero(), "{before:?} {after:?}");
}

/// A flow in ProbeBW_UP with a BDP of 34 packets, so that one loss exceeds 2 %.
fn state_after_repaired_loss(deviations: Deviations) -> State {
    let mut flow = flow(10, 2_000, deviations);
    flow.reach(State::ProbeBwUp);
    flow.run_for(ms(20));
    flow.repaired = true;
    flow.run_until(secs(60), |flow| !flow.repaired);
    flow.cc.state
}

#[test]
fn k_probe_repaired_loss_is_congestion() {
    assert_eq!(state_after_repaired_loss(Deviations::ALL), State::ProbeBwDown);
    let state = state_after_repaired_loss(without(Deviation::ProbeRepair));
    assert_eq!(state, State::ProbeBwUp);
}

#[test]
fn k_probe_repaired_loss_is_judged_like_any_other() {
    let after_repair = |mbit, state| {
        let mut flow = flow(mbit, 2_000, Deviations::ALL);
        flow.reach(state);
        flow.run_for(ms(20));
        flow.repaired = true;
        flow.run_until(secs(60), |flow| !flow.repaired);
        (flow.cc.state, flow.snapshot().inflight_longterm)
    };
    let (up, cruise) = (State::ProbeBwUp, State::ProbeBwCruise);
    assert_eq!(after_repair(100, up), (up, None), "one of 344 packets is less than 2 %");
    assert_eq!(after_repair(10, cruise), (cruise, None), "no probe is under way");
}

/// How much the window grows when 5 MB, 400 ms at the path's rate, are acknowledged at once.
fn extra_after_a_stall(deviations: Deviations) -> u64 {
    let path = Path::new(Rate::from_mbit(100), ms(400), 2_000);
    let mut flow = Loop::new(bbr(deviations), path, 1);
    flow.reach(State::ProbeBwCruise);
    let before = flow.cc.max_inflight();
    flow.cc.aggregation.update(AckArrival {
        now: flow.now,
        newly_acked: 5_000_000,
        bw: flow.cc.bw,
        cwnd: flow.cc.cwnd,
        round: flow.cc.round.count(),
        window: 10,
    });
    flow.cc.max_inflight() - before
}

#[test]
fn k_extra_acked_is_at_most_100_ms_of_the_bandwidth() {
    assert!(extra_after_a_stall(Deviations::ALL) <= 1_250_000);
    assert!(extra_after_a_stall(without(Deviation::BoundExtraAcked)) > 4_900_000);
}

fn rounds_of_overlong_drain(deviations: Deviations) -> u64 {
    let mut flow = flow(100, 2_000, deviations);
    flow.reach(State::Drain);
    flow.path.steps = std::vec![(flow.now, Rate::from_mbit(10))];
    let round = flow.cc.round.count();
    flow.reach(State::ProbeBwDown);
    flow.cc.round.count() - round
}

#[test]
//= bbr-06 5.3.2-3 test
fn m_drain_lasts_three_rounds() {
    assert_eq!(rounds_of_overlong_drain(Deviations::ALL), 3);
    assert_eq!(rounds_of_overlong_drain(without(Deviation::DrainThreeRounds)), 4);
}

fn max_bw_after_a_tenfold_drop(deviations: Deviations) -> u64 {
    let mut flow = flow(100, 4_000, deviations);
    flow.path.steps = std::vec![(secs(10), Rate::from_mbit(10))];
    flow.run(secs(100), |_| {});
    flow.max_bw()
}

#[test]
//= bbr-06 5.3.3.9-3 test
fn n_max_bw_expires_although_probe_rtt_cuts_every_probe_short() {
    assert!(is_close(max_bw_after_a_tenfold_drop(Deviations::ALL), 1_250_000, 5));
    let stuck = max_bw_after_a_tenfold_drop(without(Deviation::AdvanceEveryCycle));
    assert!(is_close(stuck, 12_500_000, 5), "{stuck}");
}

/// Duration of the probe that follows one that went too high, and the flow at its end.
fn cautious_probe(deviations: Deviations) -> (TimeDelta, Loop<Bbr3>) {
    let mut flow = flow(100, 2_000, deviations);
    flow.reach(State::ProbeBwUp);
    flow.path.loss_ppm = 100_000;
    flow.reach(State::ProbeBwDown);
    flow.path.loss_ppm = 0;
    assert!(flow.cc.cycle.prev_probe_too_high);
    flow.cc.min_rtt.schedule_probe(flow.now); // no ProbeRTT meanwhile
    flow.reach(State::ProbeBwUp);
    let began = flow.now;
    flow.reach(State::ProbeBwDown);
    (flow.now.since(began), flow)
}

#[test]
//= bbr-06 5.3.3.6-1 5.3.3.6-2 5.3.3.6-3 5.3.3.6-4 5.3.3.7-4 5.3.3.9-8 5.3.3.9-10 test
fn o_cautious_probe_stops_at_the_bound_and_is_followed_by_a_full_probe() {
    let (lasted, mut flow) = cautious_probe(Deviations::ALL);
    assert!(lasted < ms(80), "{lasted:?}");
    assert!(!flow.cc.cycle.prev_probe_too_high);
    assert!(flow.in_flight() + 3 * u64::from(MSS) > flow.cc.bounds.inflight_longterm);
    let ended = flow.now;
    flow.reach(State::ProbeBwRefill);
    let waited = flow.now.since(ended);
    assert!(waited < ms(100), "no loss, so no cruise: {waited:?}");

    let (lasted, _) = cautious_probe(without(Deviation::InflightBeforeAck));
    assert!(lasted > ms(400), "{lasted:?}");
}

#[test]
fn migration_keeps_the_choice_of_deviations() {
    let mut bbr = bbr(Deviations::NONE);
    bbr.on_path(secs(1), PathEvent::Migrated);
    assert!(!bbr.deviations.has(Deviation::AckFlight));
}
