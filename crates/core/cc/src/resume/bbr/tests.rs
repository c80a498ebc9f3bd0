use uncork_units::TimeDelta;

use super::*;
use crate::bbr1::Bbr1;
use crate::bbr3::Bbr3;
use crate::event::AppState;
use crate::script::{Host, segments, settings};
use crate::{Controller, PathEvent, Snapshot};

const RTT: TimeDelta = TimeDelta::from_millis(100);

/// The rate for half of the observed window.
fn half() -> Rate {
    Rate::of(segments(200), RTT)
}

/// A connection that resumes with 400 segments in 100 ms.
fn resumed<C: Controller>(cc: C) -> Host<C> {
    let mut host = Host::new(cc);
    let hint = ResumeHint { saved_cwnd: segments(400), saved_rtt: RTT };
    host.cc.on_path(host.now, PathEvent::Resume(hint));
    host
}

/// An initial window of 10 has been delivered, in a round that ended with an ACK.
fn jumped<C: Controller>(cc: C) -> Host<C> {
    let mut host = resumed(cc);
    for _ in 0..20 {
        if phase(&host) == Some(ResumePhase::Unvalidated) {
            break;
        }
        host.fill();
        host.advance(host.rtt);
        host.ack(host.in_flight().min(10));
    }
    assert_eq!(phase(&host), Some(ResumePhase::Unvalidated));
    host
}

fn phase<C: Controller>(host: &Host<C>) -> Option<ResumePhase> {
    host.cc.snapshot().resume
}

fn v1() -> Bbr1 {
    Bbr1::new(&settings(10))
}

fn v3() -> Bbr3 {
    Bbr3::new(&settings(10), false)
}

fn jumps<C: Controller>(cc: C) {
    let host = jumped(cc);
    let control = host.cc.control();
    assert!(control.pacing_rate >= Some(half()), "{control:?}");
    assert!(control.cwnd >= segments(400), "Startup's window at that rate");
    assert_eq!(host.cc.snapshot().state, "Startup");
}

#[test]
//= rfc9959 C-1 C-2 C-4 test
fn startup_paces_at_half_the_observed_rate() {
    jumps(v1());
    jumps(v3());
}

fn lasts_two_rounds<C: Controller>(cc: C) {
    let mut host = jumped(cc);
    let mut round = || {
        host.fill();
        host.advance(host.rtt);
        host.ack(host.in_flight());
        phase(&host)
    };
    assert_eq!(round(), Some(ResumePhase::Validating));
    assert_eq!(round(), None);
}

#[test]
//= rfc9959 C-3 test
fn a_trial_lasts_two_rounds() {
    lasts_two_rounds(v1());
    lasts_two_rounds(v3());
}

fn retreats<C: Controller>(cc: C) {
    let mut host = jumped(cc);
    host.fill();
    host.advance(host.rtt);
    let max_bw = |snapshot: Snapshot| snapshot.max_bw;
    let before = max_bw(host.cc.snapshot());
    host.lose(1);
    let missing = host.missing();
    assert_eq!(phase(&host), Some(ResumePhase::SafeRetreat));
    assert_eq!(host.cc.snapshot().state, "Drain");
    // Delivery in this phase would set a new maximum rate.
    host.ack(host.in_flight() / 2);
    if host.cc.snapshot().state == "Drain" {
        assert_eq!(max_bw(host.cc.snapshot()), before);
    }
    host.cc.on_spurious(host.now, &missing);
    assert_ne!(host.cc.snapshot().state, "Startup", "it is not undone");
    for _ in 0..10 {
        host.ack(host.in_flight());
        host.fill();
        host.advance(host.rtt);
    }
    assert_eq!(phase(&host), Some(ResumePhase::SafeRetreat), "the verdict stands");
    assert!(host.cc.snapshot().state.starts_with("ProbeBW"), "{}", host.cc.snapshot().state);
    host.cc.on_path(host.now, PathEvent::Migrated);
    assert_eq!(phase(&host), None);
}

#[test]
//= rfc9959 C-5 C-6 test
fn congestion_on_trial_ends_startup_and_drain_discards_samples() {
    retreats(v1());
    retreats(v3());
}

fn refuses<C: Controller>(cc: C, rtt_ms: u64, lost: usize) {
    let mut host = resumed(cc);
    host.rtt = TimeDelta::from_millis(rtt_ms);
    host.fill();
    host.advance(host.rtt);
    if lost > 0 {
        host.lose(lost);
    }
    for _ in 0..3 {
        host.ack(host.in_flight());
        assert_eq!(phase(&host), None, "{rtt_ms} ms, {lost} lost");
        host.fill();
        host.advance(host.rtt);
    }
}

#[test]
//= rfc9959 3.2-2 3.2-6 3.2-7 test
fn congestion_or_a_different_rtt_ends_reconnaissance() {
    for (rtt_ms, lost) in [(100, 1), (50, 0), (1_001, 0)] {
        refuses(v1(), rtt_ms, lost);
        refuses(v3(), rtt_ms, lost);
    }
}

fn takes_back<C: Controller>(cc: C) {
    let mut host = jumped(cc);
    host.advance(host.rtt);
    for round in 0..30 {
        host.ack(host.in_flight());
        if round > 2 {
            assert_eq!(phase(&host), None);
            // About 20 segments were delivered in a round trip.
            let control = host.cc.control();
            assert!(control.cwnd >= segments(10) && control.cwnd < segments(80), "{control:?}");
            assert!(control.pacing_rate < Some(half()), "{control:?}");
        }
        (0..2).for_each(|_| host.send_as(AppState::Drained));
        host.advance(host.rtt);
    }
}

#[test]
fn unused_jump_is_reverted() {
    takes_back(v1());
    takes_back(v3());
}

fn waits_for_data<C: Controller>(cc: C) {
    let mut host = resumed(cc);
    for _ in 0..20 {
        (0..2).for_each(|_| host.send_as(AppState::Drained));
        host.advance(host.rtt);
        host.ack(2);
        assert_eq!(phase(&host), Some(ResumePhase::Reconnaissance));
    }
    assert!(host.cc.control().pacing_rate < Some(half()));
}

#[test]
fn an_application_limited_flow_stays_in_reconnaissance() {
    waits_for_data(v1());
    waits_for_data(v3());
}

fn keeps_what_is_faster<C: Controller>(cc: C) {
    let mut host = Host::new(cc);
    // From the first sample on, Startup paces at more than 20 segments per round trip.
    let hint = ResumeHint { saved_cwnd: segments(40), saved_rtt: RTT };
    host.cc.on_path(host.now, PathEvent::Resume(hint));
    for _ in 0..3 {
        host.fill();
        host.advance(host.rtt);
        host.ack(host.in_flight());
        assert_ne!(phase(&host), Some(ResumePhase::Unvalidated));
    }
    assert_eq!(phase(&host), None);
    host.fill();
    host.advance(host.rtt);
    host.lose(1);
    assert_eq!(host.cc.snapshot().state, "Startup", "same as without a hint");
}

#[test]
fn hint_below_startups_pacing_rate_is_dropped() {
    keeps_what_is_faster(v1());
    keeps_what_is_faster(v3());
}

fn takes_one_hint<C: Controller>(cc: C) {
    let mut host = jumped(cc);
    let hint = ResumeHint { saved_cwnd: segments(4_000), saved_rtt: RTT };
    host.cc.on_path(host.now, PathEvent::Resume(hint));
    assert_eq!(phase(&host), Some(ResumePhase::Unvalidated));
    for _ in 0..3 {
        host.fill();
        host.advance(host.rtt);
        host.ack(host.in_flight());
    }
    host.cc.on_path(host.now, PathEvent::Resume(hint));
    assert_eq!(phase(&host), None);
}

#[test]
fn a_second_hint_is_ignored() {
    takes_one_hint(v1());
    takes_one_hint(v3());
}

fn times_out<C: Controller>(cc: C) {
    let mut host = jumped(cc);
    host.fill();
    let cwnd = host.cwnd();
    host.advance(host.rtt.times(3));
    let lost = host.time_out();
    assert_eq!(phase(&host), Some(ResumePhase::SafeRetreat));
    host.cc.on_spurious(host.now, &lost);
    assert!(host.cwnd() < cwnd, "{} of {cwnd}", host.cwnd());
    host.send();
    host.advance(host.rtt);
    host.ack(1);
    assert_ne!(host.cc.snapshot().state, "Startup");
}

#[test]
fn spurious_timeout_on_trial_is_a_permanent_retreat() {
    times_out(v1());
    times_out(v3());
}

fn ignores<C: Controller>(cc: C) {
    let mut host = Host::new(cc);
    host.fill();
    host.advance(host.rtt);
    host.lose(1);
    let hint = ResumeHint { saved_cwnd: segments(400), saved_rtt: RTT };
    host.cc.on_path(host.now, PathEvent::Resume(hint));
    assert_eq!(phase(&host), None);
}

#[test]
fn a_hint_after_a_loss_is_ignored() {
    ignores(v1());
    ignores(v3());
}
