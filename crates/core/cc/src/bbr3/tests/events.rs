//! Timeouts, CE marks, idle periods and path changes.

use super::script::Script;
use super::*;
use crate::{AppState, Controller, PathEvent, Timeout};

const MSS64: u64 = MSS as u64;

/// Ten packets in flight, after ten acknowledged ones.
fn loaded() -> Script {
    let mut script = Script::new(Deviations::ALL);
    script.send(10).wait(ms(40)).ack(10).send(10);
    script
}

#[test]
//= bbr-06 5.6.4.4-1 test
fn timeout_allows_one_packet() {
    let mut script = loaded();
    let before = script.bbr.cwnd;
    script.wait(ms(500)).time_out(Timeout::Retransmission);
    assert_eq!(script.bbr.control().cwnd, 11 * MSS64);
    script.lose(10);
    assert_eq!(script.bbr.control().cwnd, MSS64);
    script.send(1).wait(ms(40)).ack(1);
    assert_eq!(script.bbr.control().cwnd, 4 * MSS64);
    assert!(before > 4 * MSS64, "recovery is over, but the window regrows gradually");
}

#[test]
//= bbr-06 5.6.4.4-4 test
fn timeout_in_recovery_keeps_the_saved_window() {
    let mut script = loaded();
    let before = script.bbr.cwnd;
    script.wait(ms(40)).ack_and_lose(1, &[false]).send(2);
    script.bbr.cwnd = 5 * MSS64; // as the bounds of a round with loss may leave it
    script.wait(ms(500)).time_out(Timeout::Retransmission).lose(10);
    script.bbr.on_spurious(script.now, &script.lost);
    assert_eq!(script.bbr.cwnd, before);
}

#[test]
fn spurious_timeout_is_undone_even_without_more_data() {
    let mut script = loaded();
    script.ack(9).send_as(9, AppState::Drained);
    let before = script.bbr.cwnd;
    script.wait(ms(500)).time_out(Timeout::Retransmission).lose(10);
    let retransmission = crate::SentPacket { bytes: MSS, in_flight: MSS64, unacked: 10 * MSS64 };
    script.bbr.on_sent(script.now, retransmission, AppState::Drained);
    assert!(script.bbr.idle_restart, "nothing was in flight");
    script.bbr.on_spurious(script.now, &script.lost);
    assert_eq!(script.bbr.cwnd, before);
}

#[test]
fn probe_timeout_changes_nothing() {
    let mut script = loaded();
    let before = script.bbr.control();
    script.wait(ms(100)).time_out(Timeout::Probe);
    assert_eq!(script.bbr.control(), before);
}

#[test]
//= rfc9002 7.6.2-5 test
fn persistent_congestion_reduces_to_the_minimum_and_cannot_be_undone() {
    let mut script = loaded();
    script.wait(ms(3_000)).time_out(Timeout::Persistent).lose(10);
    assert_eq!(script.bbr.control().cwnd, 4 * MSS64);
    let token = script.bbr.on_sent(
        script.now,
        crate::SentPacket { bytes: MSS, in_flight: MSS64, unacked: MSS64 },
        AppState::Backlogged,
    );
    let lost = [crate::Lost { token, bytes: MSS, contiguous: false }; 10];
    script.bbr.on_spurious(script.now, &lost);
    assert_eq!(script.bbr.control().cwnd, 4 * MSS64);
}

#[test]
fn persistent_congestion_inside_an_episode_cancels_the_undo_of_a_probe() {
    let mut flow = flow(100, 2_000, Deviations::ALL);
    flow.reach(State::ProbeBwUp);
    flow.path.loss_ppm = 100_000;
    flow.reach(State::ProbeBwDown);
    let bounds = flow.cc.bounds;
    flow.cc.on_timeout(flow.now, Timeout::Persistent);
    flow.cc.on_spurious(flow.now, &flow.lost_packets);
    assert_eq!((flow.cc.bounds, flow.cc.state), (bounds, State::ProbeBwDown));
    assert_eq!(flow.cc.cwnd, 4 * MSS64);
}

#[test]
//= bbr-06 5.2.4-1 5.5.10.2-6 test
fn losses_without_acks_do_not_run_the_model() {
    let mut script = loaded();
    let (round, cwnd) = (script.bbr.round.count(), script.bbr.cwnd);
    script.wait(ms(60)).lose(3);
    assert!(script.bbr.signals.is_loss_in_round && script.bbr.recovery.is_active());
    assert!(!script.bbr.round.started());
    assert_eq!((script.bbr.round.count(), script.bbr.cwnd), (round, cwnd));
}

#[test]
fn larger_mss_raises_the_minimum_window() {
    let mut script = loaded();
    script.wait(ms(500)).time_out(Timeout::Persistent);
    script.bbr.on_path(script.now, PathEvent::MtuChanged { mss: 9_000 });
    assert_eq!(script.bbr.control().cwnd, 36_000);
    assert!(script.bbr.control().send_quantum >= 18_000);
}

#[test]
fn restored_window_has_room_for_four_larger_packets() {
    let mut script = loaded();
    script.wait(ms(3_000)).time_out(Timeout::Persistent).lose(10).send(4);
    script.wait(ms(500)).time_out(Timeout::Retransmission).lose(4);
    script.bbr.on_path(script.now, PathEvent::MtuChanged { mss: 9_000 });
    script.wait(ms(40)).lose(0);
    assert_eq!(script.bbr.control().cwnd, 9_000);
    script.bbr.on_spurious(script.now, &script.lost);
    assert_eq!(script.bbr.control().cwnd, 36_000);
}

#[test]
fn new_connection_has_at_least_the_minimum_window() {
    let settings = Settings { initial_window: 0, ..settings() };
    let mut bbr = Bbr3::new(&settings, false);
    assert_eq!(bbr.control().cwnd, 4 * MSS64);
    bbr.on_path(Time::ZERO, PathEvent::MtuChanged { mss: 9_000 });
    bbr.on_path(Time::ZERO, PathEvent::Migrated);
    assert_eq!(bbr.control().cwnd, 36_000);
}

#[test]
fn migration_resets_the_path_model() {
    let mut flow = flow(100, 2_000, Deviations::ALL);
    flow.reach(State::ProbeBwCruise);
    flow.cc.on_path(flow.now, PathEvent::Migrated);
    let snapshot = flow.snapshot();
    assert_eq!((snapshot.state, snapshot.max_bw, snapshot.min_rtt), ("Startup", None, None));
    assert_eq!(flow.cc.control().cwnd, 10 * MSS64);
    flow.reach(State::ProbeBwCruise);
    assert!(is_close(flow.max_bw(), 12_500_000, 2));
}

/// Feedback about lost and delivered packets of the old path has no effect.
#[test]
fn late_feedback_about_the_old_path_is_ignored() {
    let mut script = Script::new(Deviations::ALL);
    script.send(10).wait(ms(40)).ack(2).wait(ms(1));
    script.bbr.on_path(script.now, PathEvent::Migrated);
    let fresh = script.bbr.snapshot();
    script.wait(ms(1)).ack_and_lose(3, &[false, true, false]);
    assert_eq!(script.bbr.snapshot(), fresh);
    assert_eq!(script.bbr.sampler.lost(), 0);
    // The arrival of an old path's packet must not undo a loss on the new path.
    let old = script.lost[0];
    script.ack(2).send(5).wait(ms(40)).ack_and_lose(1, &[false]);
    assert!(script.bbr.snapshot().in_recovery);
    script.bbr.on_spurious(script.now, &[old]);
    assert!(script.bbr.snapshot().in_recovery);
    assert!(script.bbr.min_rtt.get() == Some(ms(40)));
}

#[test]
//= bbr-06 3.7-1 test
fn marks_in_cruise_lower_the_short_term_bounds() {
    let mut flow = flow(100, 2_000, Deviations::ALL);
    flow.reach(State::ProbeBwCruise);
    flow.marks = 1;
    flow.run_for(ms(100));
    assert!(flow.snapshot().inflight_shortterm.is_some());
    assert_eq!(flow.stats.lost, 0);
}

#[test]
//= bbr-06 3.7-1 test
fn more_than_two_percent_of_marks_end_a_probe() {
    let mut flow = flow(100, 2_000, Deviations::ALL);
    flow.reach(State::ProbeBwUp);
    flow.run_for(ms(10));
    flow.marks = 2;
    flow.run_for(ms(1));
    assert_eq!(flow.cc.state, State::ProbeBwUp, "two of 344 is less than 2 %");
    flow.marks = 12;
    flow.run_for(ms(1));
    assert_eq!(flow.cc.state, State::ProbeBwDown);
    assert!(flow.snapshot().inflight_longterm.is_some());
}

#[test]
//= bbr-06 5.6.4.4-2 5.6.4.4-3 test
fn window_is_restored_after_recovery_and_bounded_by_the_model() {
    let mut flow = flow(100, 2_000, Deviations::ALL);
    flow.reach(State::ProbeBwUp);
    let before = flow.cc.cwnd;
    flow.path.loss_ppm = 5_000;
    assert!(flow.run_until(secs(60), |flow| flow.cc.recovery.is_active()));
    flow.path.loss_ppm = 0;
    assert!(flow.run_until(secs(60), |flow| !flow.cc.recovery.is_active()));
    let bound = flow.cc.bounds.inflight_longterm.min(flow.cc.max_inflight());
    assert!(flow.cc.cwnd >= before.min(bound));
}

#[test]
//= bbr-06 5.3.4.3-3 5.6.4.4-4 test
fn probe_rtt_saves_the_window_on_entry() {
    let mut flow = flow(100, 2_000, Deviations::ALL);
    flow.reach(State::ProbeBwCruise);
    flow.cc.undo.prior_cwnd = 1 << 40;
    flow.reach(State::ProbeRtt);
    assert!(flow.cc.undo.prior_cwnd < 3 * flow.path.bdp());
}

#[test]
fn probe_rtt_uses_the_min_rtt_of_the_same_ack() {
    let mut script = loaded();
    // After 12 s without an ACK both minima have expired. Nine packets are less than half of the
    // BDP computed from the new min_rtt.
    script.wait(ms(12_000)).ack(1);
    assert_eq!(script.bbr.state, State::ProbeRtt);
    assert!(script.bbr.probe_rtt_done_stamp != Time::NEVER);
}

#[test]
//= bbr-06 4.1.2.4-3 test
fn a_timeout_of_a_full_window_is_not_application_limited() {
    let mut script = loaded();
    let room = ((script.bbr.cwnd - script.in_flight()) / MSS64) as usize;
    script.send(room - 1).send_as(1, AppState::Drained).wait(ms(500));
    let flight = (script.in_flight() / MSS64) as usize;
    script.time_out(Timeout::Retransmission).lose(flight);
    assert!(!script.bbr.sampler.is_app_limited());
}

#[test]
//= rfc9002 7.8-2 test
//= bbr-06 4.1.1.3-2 4.1.2.4-1 test
fn pacing_limited_sender_is_not_application_limited() {
    let mut script = Script::new(Deviations::ALL);
    script.send(10).wait(ms(40)).ack(10);
    // The application writes just in time: the pacer has not released the next packet yet.
    script.send_as(1, AppState::Drained).wait(TimeDelta::from_nanos(1));
    script.send(1);
    assert!(!script.bbr.sampler.is_app_limited());
    script.send_as(1, AppState::Drained).wait(ms(20)).send(1);
    assert!(script.bbr.sampler.is_app_limited());
}

#[test]
//= bbr-06 5.3.3.2-3 5.3.3.8.2-2 5.3.3.8.3-3 test
fn small_pipes_probe_after_one_round_per_packet_of_bdp() {
    let mut flow = flow(10, 2_000, Deviations::ALL);
    flow.reach(State::ProbeBwCruise);
    let packets = flow.cc.bdp.div_ceil(MSS64);
    flow.reach(State::ProbeBwRefill);
    let rounds = u64::from(flow.cc.cycle.rounds_since_up);
    assert!(packets < 40 && (packets..=packets + 1).contains(&rounds), "{rounds}");
}

#[test]
//= bbr-06 5.3.3.8.3-2 test
fn equal_seeds_give_equal_runs_and_different_seeds_do_not() {
    let probes = |seed| {
        let settings = Settings { seed, ..settings() };
        let path = Path::new(Rate::from_mbit(100), ms(40), 2_000);
        let mut flow = Loop::new(Bbr3::new(&settings, false), path, 1);
        flow.run(secs(2), |_| {});
        flow.reach(State::ProbeBwUp);
        flow.now
    };
    assert_eq!(probes(7), probes(7));
    assert_ne!(probes(7), probes(8));
}
