//! Individual rules of the state machine: entry, exit and forbidden actions of each state.

use super::script::Script;
use super::*;
use crate::bbr3::ack_aggregation::AckArrival;
use crate::bbr3::bounds::Bounds;
use crate::bbr3::state::AckPhase;
use crate::sampler::RateSample;
use crate::{AppState, Controller, SentPacket};

const MSS64: u64 = MSS as u64;

fn reached(state: State) -> Loop<Bbr3> {
    let mut flow = flow(100, 2_000, Deviations::ALL);
    flow.reach(state);
    flow
}

#[test]
//= bbr-06 5.2.1-1 5.3.3.9-6 5.6.4.1-1 test
fn a_new_connection_is_in_startup_and_unbounded() {
    let bbr = bbr(Deviations::ALL);
    let snapshot = bbr.snapshot();
    assert_eq!((snapshot.state, snapshot.max_bw, snapshot.min_rtt), ("Startup", None, None));
    assert_eq!((bbr.bounds, bbr.cycle.ack_phase), (Bounds::NONE, AckPhase::Init));
    assert!(!bbr.full_pipe.reached() && !bbr.idle_restart && !bbr.cycle.is_bw_probe_sample);
    assert_eq!((bbr.cwnd, bbr.round.count()), (10 * MSS64, 0));
    assert_eq!((bbr.undo.prior_cwnd, bbr.undo_state), (0, None));
}

#[test]
//= bbr-06 5.2.3-1 5.2.3-2 5.2.3-3 5.6.2-4 test
fn the_ack_that_ends_startup_is_paced_as_drain() {
    let mut flow = flow(100, 2_000, Deviations::ALL);
    assert!(flow.run_until(secs(10), |flow| flow.cc.full_pipe.reached()));
    assert_eq!(flow.cc.state, State::Drain);
    let rate = flow.cc.bw.bytes_per_sec() / 2 * 99 / 100;
    assert!(flow.cc.pacing_rate.bytes_per_sec().abs_diff(rate) <= 1);
    let quantum = flow.cc.pacing_rate.bytes_in(ms(1));
    assert_eq!(flow.cc.send_quantum, quantum);
}

#[test]
//= bbr-06 5.3.3.3-3 5.3.3.9-4 5.3.3.9-6 5.3.3.9-7 test
fn refill_lasts_one_round() {
    let mut flow = reached(State::ProbeBwRefill);
    assert_eq!(flow.cc.cycle.ack_phase, AckPhase::Refilling);
    assert!(!flow.cc.cycle.is_bw_probe_sample);
    let (began, round) = (flow.now, flow.cc.round.count());
    flow.run_until(secs(60), |flow| flow.cc.state != State::ProbeBwRefill);
    assert_eq!((flow.cc.state, flow.cc.round.count()), (State::ProbeBwUp, round + 1));
    let lasted = flow.now.since(began);
    assert!(lasted >= ms(40) && lasted <= ms(45), "{lasted:?}");
    assert!(flow.cc.cycle.is_bw_probe_sample);
}

#[test]
//= bbr-06 5.3.3.3-2 5.3.3.3-4 test
fn refill_is_paced_at_the_estimate_of_the_bandwidth() {
    let mut flow = reached(State::ProbeBwRefill);
    while flow.cc.state == State::ProbeBwRefill {
        let rate = flow.cc.max_bw.get().bytes_per_sec() * 99 / 100;
        assert_eq!(flow.cc.pacing_rate.bytes_per_sec(), rate);
        flow.run_for(ms(2));
    }
}

#[test]
//= bbr-06 5.3.4.1-1 test
fn min_rtt_rises_only_after_a_probe_rtt_has_drained_the_queue() {
    let mut flow = reached(State::ProbeBwCruise);
    let before = flow.cc.min_rtt.get();
    flow.path.rtt = ms(60);
    let mut drained = false;
    let rose = flow.run_until(flow.now + TimeDelta::from_secs(30), |flow| {
        drained |= flow.cc.state == State::ProbeRtt && flow.cc.probe_rtt_done_stamp != Time::NEVER;
        flow.cc.min_rtt.get() > before
    });
    assert!(rose && drained);
}

#[test]
//= bbr-06 5.3.3.5-2 test
fn up_raises_inflight_to_a_quarter_above_the_bdp() {
    let mut flow = reached(State::ProbeBwUp);
    assert_eq!(flow.snapshot().inflight_longterm, None);
    let mut most = 0;
    flow.run_until(secs(60), |flow| {
        most = most.max(flow.in_flight());
        flow.cc.state != State::ProbeBwUp
    });
    let bdp = flow.path.bdp();
    assert!(most * 4 >= bdp * 5, "{most} of {bdp}");
}

#[test]
//= bbr-06 5.3.3.9-2 5.5.10.3-3 test
fn a_probe_ends_with_fresh_congestion_signals() {
    let mut flow = reached(State::ProbeBwUp);
    flow.run_for(ms(60));
    flow.cc.note_loss();
    assert!(!flow.cc.signals.bw_latest.is_zero() && flow.cc.signals.inflight_latest > 0);
    flow.cc.start_probe_bw_down(flow.now);
    let signals = flow.cc.signals;
    assert!(!signals.is_loss_in_round && signals.bw_latest.is_zero());
    assert_eq!(signals.inflight_latest, 0);
}

#[test]
//= bbr-06 5.3.3.9-11 5.5.10.3-5 test
fn loss_while_probing_does_not_set_the_short_term_bounds() {
    for state in [State::ProbeBwRefill, State::ProbeBwUp] {
        let mut flow = reached(state);
        flow.cc.note_loss();
        let mut ended = false;
        flow.run_until(flow.now + ms(100), |flow| {
            ended |= flow.cc.signals.loss_round_start && !flow.cc.signals.is_loss_in_round;
            ended || !flow.cc.state.is_probing_bw()
        });
        assert!(ended, "a loss round ends while probing");
        let snapshot = flow.snapshot();
        assert_eq!((snapshot.bw_shortterm, snapshot.inflight_shortterm), (None, None));
    }
}

/// The sample of an ACK for a packet that left at `prior_delivered`, with `delivered` bytes since,
/// at `mbit`.
fn sample(prior_delivered: u64, delivered: u64, mbit: u64) -> RateSample {
    let delivery_rate = Rate::from_mbit(mbit);
    RateSample {
        has_data: true,
        prior_delivered,
        delivered,
        delivery_rate,
        ..RateSample::default()
    }
}

#[test]
//= bbr-06 5.5.10.3-1 5.5.10.3-2 test
fn latest_signals_are_maxima_of_a_loss_round() {
    let mut bbr = bbr(Deviations::ALL);
    let mut ack = |sample: RateSample| {
        bbr.update_latest_delivery_signals(&sample);
        let signals = bbr.signals;
        bbr.signals.advance_latest(&sample);
        (signals.bw_latest, signals.inflight_latest, signals.loss_round_start)
    };
    ack(sample(0, 1, 1)); // the round of the handshake ends; C.delivered is 0 throughout
    assert_eq!(ack(sample(0, 9_000, 50)), (Rate::from_mbit(50), 9_000, true));
    assert_eq!(ack(sample(0, 8_000, 60)), (Rate::from_mbit(60), 9_000, true));
    // Each of them ended a round, so the next starts from the previous ACK.
    assert_eq!(ack(sample(0, 7_000, 40)), (Rate::from_mbit(60), 8_000, true));
    assert_eq!(ack(sample(0, 7_000, 40)), (Rate::from_mbit(40), 7_000, true));
}

#[test]
//= bbr-06 5.5.9-4 test
fn startup_remembers_aggregation_for_one_round() {
    let mut flow = flow(100, 2_000, Deviations::ALL);
    flow.run_for(ms(100));
    assert_eq!(flow.cc.state, State::Startup);
    let round = flow.cc.round.count();
    flow.cc.aggregation.update(AckArrival {
        now: flow.now,
        newly_acked: 90_000,
        bw: flow.cc.bw,
        cwnd: u64::MAX,
        round,
        window: 1,
    });
    let burst = flow.cc.aggregation.extra_acked();
    assert!(burst >= 80_000, "{burst}");
    flow.run_until(secs(1), |flow| flow.cc.round.count() > round + 2);
    assert_eq!(flow.cc.state, State::Startup);
    assert!(flow.cc.aggregation.extra_acked() < burst / 2);
}

#[test]
//= bbr-06 5.5.10.2-4 test
fn a_loss_of_an_application_limited_flight_sets_no_bound() {
    let mut script = Script::new(Deviations::ALL);
    script.send(10).wait(ms(40)).ack(10).send(30);
    script.bbr.full_pipe.declare_full();
    script.bbr.state = State::ProbeBwUp;
    script.bbr.cycle.is_bw_probe_sample = true;
    script.bbr.sampler.mark_app_limited();
    script.send(10).wait(ms(40)).ack(30).lose(10);
    assert!(script.bbr.cycle.prev_probe_too_high);
    assert_eq!(script.bbr.state, State::ProbeBwDown);
    assert_eq!(script.bbr.snapshot().inflight_longterm, None);
}

#[test]
//= bbr-06 5.5.11.2-7 test
fn undo_in_probe_rtt_restores_the_bounds_and_keeps_the_state() {
    let mut flow = flow(100, 2_000, Deviations::ALL);
    flow.reach(State::ProbeBwUp);
    flow.run_for(ms(20));
    let before = flow.cc.bounds;
    flow.lost_packets.clear();
    flow.path.loss_ppm = 100_000;
    flow.reach(State::ProbeBwDown);
    flow.path.loss_ppm = 0;
    assert_ne!(flow.cc.bounds, before);
    let lost = core::mem::take(&mut flow.lost_packets);
    let now = flow.now;
    flow.cc.check_probe_rtt(now, &RateSample::default(), true);
    assert_eq!(flow.cc.state, State::ProbeRtt);
    flow.cc.on_spurious(now, &lost);
    assert_eq!((flow.cc.state, flow.cc.bounds), (State::ProbeRtt, before));
}

#[test]
//= bbr-06 5.3.4.3-3 test
fn probe_rtt_ends_a_probe() {
    let mut flow = reached(State::ProbeRtt);
    flow.reach(State::ProbeBwUp);
    flow.cc.min_rtt.schedule_probe(Time::ZERO);
    assert_eq!(flow.cc.cycle.ack_phase, AckPhase::ProbeStarting);
    flow.reach(State::ProbeRtt);
    assert_eq!(flow.cc.cycle.ack_phase, AckPhase::ProbeStopping);
    assert!(flow.cc.probe_rtt_done_stamp == Time::NEVER, "inflight has not come down yet");
    // A round later its last ACKs have arrived.
    flow.run_for(ms(100));
    assert_eq!(flow.cc.cycle.ack_phase, AckPhase::Init);
    assert!(!flow.cc.cycle.is_bw_probe_sample && flow.cc.probe_rtt_done_stamp != Time::NEVER);
}

#[test]
//= bbr-06 5.3.4.3-6 test
fn probe_rtt_marks_its_samples_application_limited() {
    let mut flow = reached(State::ProbeRtt);
    while flow.cc.state == State::ProbeRtt {
        assert!(flow.cc.sampler.is_app_limited());
        flow.run_for(ms(5));
    }
}

#[test]
//= bbr-06 5.4.1-4 test
fn idle_time_can_complete_a_probe_rtt() {
    let mut flow = reached(State::ProbeRtt);
    let saved = flow.cc.undo.prior_cwnd;
    flow.run_for(ms(100)); // inflight has come down
    flow.write(0);
    flow.run_for(TimeDelta::from_secs(1));
    assert_eq!((flow.in_flight(), flow.cc.state), (0, State::ProbeRtt));
    flow.write(MSS64);
    assert_eq!(flow.cc.state, State::ProbeBwCruise);
    assert_eq!(flow.cc.cwnd, saved);
}

#[test]
//= bbr-06 5.4.1-3 test
fn a_restart_from_idle_keeps_the_window_and_paces_at_the_bandwidth() {
    let mut flow = reached(State::ProbeBwUp);
    flow.write(0);
    flow.run_for(ms(500));
    assert_eq!((flow.in_flight(), flow.cc.state), (0, State::ProbeBwUp));
    let cwnd = flow.cc.cwnd;
    let packet = SentPacket { bytes: MSS, in_flight: MSS64, unacked: MSS64 };
    flow.cc.on_sent(flow.now, packet, AppState::Backlogged);
    assert!(flow.cc.idle_restart);
    assert_eq!(flow.cc.cwnd, cwnd);
    assert_eq!(flow.cc.pacing_rate.bytes_per_sec(), flow.cc.bw.bytes_per_sec() * 99 / 100);
}
