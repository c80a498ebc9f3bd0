use uncork_units::{Rate, TimeDelta};

use super::*;
use crate::newreno::NewReno;
use crate::script::{Host, Report, segments, settings};
use crate::{Controller, PathEvent, Timeout};

const RTT: TimeDelta = TimeDelta::from_millis(100);

/// A connection that resumes with 200 segments in 100 ms and has sent its initial window of 10.
fn resumed() -> Host<NewReno> {
    let mut host = Host::new(NewReno::new(&settings(10)));
    resume(&mut host, 200);
    host.fill();
    host.advance(RTT);
    host
}

fn resume(host: &mut Host<NewReno>, saved: u64) {
    let hint = ResumeHint { saved_cwnd: segments(saved), saved_rtt: RTT };
    host.cc.on_path(host.now, PathEvent::Resume(hint));
}

/// All but the last packet of the initial window is acknowledged: 19 are in flight.
fn nearly_confirmed() -> Host<NewReno> {
    let mut host = resumed();
    for _ in 0..9 {
        host.ack(1);
        host.fill();
    }
    host.advance(TimeDelta::from_millis(1));
    host
}

/// The window has jumped to 100 segments, while 18 are in flight.
fn jumped() -> Host<NewReno> {
    let mut host = nearly_confirmed();
    host.ack(1);
    assert_eq!((phase(&host), host.in_flight()), (Some(ResumePhase::Unvalidated), 18));
    host
}

/// The jump was used in full, and the 18 packets sent before it are acknowledged: 82 are in flight.
fn validating() -> Host<NewReno> {
    let mut host = jumped();
    pace(&mut host, 82);
    assert_eq!(phase(&host), Some(ResumePhase::Validating));
    host.advance(TimeDelta::from_millis(18));
    host.ack(18);
    host
}

/// Sends the segments, a millisecond apart.
fn pace<C: Controller>(host: &mut Host<C>, segments: usize) {
    for _ in 0..segments {
        host.advance(TimeDelta::from_millis(1));
        host.send();
    }
}

fn phase(host: &Host<NewReno>) -> Option<ResumePhase> {
    host.cc.snapshot().resume
}

fn ssthresh(host: &Host<NewReno>) -> Option<u64> {
    host.cc.snapshot().ssthresh
}

#[test]
//= rfc9959 3.2-1 3.2-8 3.3-2 3.3-3 4.3.2-1 test
fn window_jumps_to_half_after_the_initial_window_is_acknowledged() {
    let mut host = nearly_confirmed();
    assert_eq!(phase(&host), Some(ResumePhase::Reconnaissance));
    assert_eq!(host.cwnd(), segments(19), "plain slow start");
    host.ack(1);
    assert_eq!(phase(&host), Some(ResumePhase::Unvalidated));
    let control = host.cc.control();
    assert_eq!(control.cwnd, segments(100));
    assert_eq!(control.pacing_rate, Some(Rate::of(segments(100), RTT)));
    assert!(control.send_quantum < segments(10), "no burst larger than the initial window");
}

#[test]
//= rfc9959 3.2-2 test
fn congestion_in_reconnaissance_ends_it() {
    for report in
        [Report { lost: 1, ..Report::default() }, Report { ce_packets: 1, ..Report::default() }]
    {
        let mut host = resumed();
        host.feedback(Report { acked: 1, una_advanced: true, ..report });
        assert_eq!(phase(&host), None);
        assert_eq!(ssthresh(&host), Some(segments(5)), "same as without a hint");
    }
}

#[test]
//= rfc9959 3.2-6 3.2-7 test
fn different_rtt_ends_reconnaissance() {
    for rtt_ms in [50, 1_001] {
        let mut host = resumed();
        host.rtt = TimeDelta::from_millis(rtt_ms);
        for _ in 0..10 {
            host.ack(1);
            host.fill();
        }
        assert_eq!((phase(&host), host.cwnd()), (None, segments(20)));
    }
}

#[test]
//= rfc9959 3.2-9 test
fn a_sender_without_data_stays_in_reconnaissance() {
    let mut host = Host::new(NewReno::new(&settings(10)));
    resume(&mut host, 200);
    for _ in 0..5 {
        (0..4).for_each(|_| host.send());
        host.advance(RTT);
        host.ack(4);
    }
    assert_eq!((phase(&host), host.cwnd()), (Some(ResumePhase::Reconnaissance), segments(10)));
}

#[test]
fn hint_below_the_window_has_no_effect() {
    let mut host = Host::new(NewReno::new(&settings(10)));
    resume(&mut host, 30);
    host.round();
    assert_eq!((phase(&host), host.cwnd()), (None, segments(20)));
}

#[test]
fn a_hint_after_congestion_is_ignored() {
    let mut host = Host::new(NewReno::new(&settings(20)));
    host.lose_one_and_recover();
    resume(&mut host, 200);
    assert_eq!(phase(&host), None);
}

#[test]
//= rfc9959 3.3-7 test
fn a_full_flight_ends_the_unvalidated_phase() {
    let mut host = jumped();
    host.fill();
    assert_eq!(phase(&host), Some(ResumePhase::Validating));
    let control = host.cc.control();
    assert_eq!((control.cwnd, control.pacing_rate), (segments(100), None));
}

#[test]
//= rfc9959 3.3-8 3.3-11 test
fn first_ack_of_an_unvalidated_packet_sets_the_window_to_the_flight() {
    let mut host = jumped();
    host.advance(TimeDelta::from_millis(1));
    (0..60).for_each(|_| host.send());
    host.advance(TimeDelta::from_millis(90));
    host.ack(18);
    assert_eq!((phase(&host), host.cwnd()), (Some(ResumePhase::Unvalidated), segments(100)));
    host.ack(1);
    assert_eq!((phase(&host), host.cwnd()), (Some(ResumePhase::Validating), segments(59)));
}

#[test]
//= rfc9959 3.3-1 3.3-4 3.3-10 test
fn unused_jump_is_reduced_to_pipe_size() {
    let mut host = jumped();
    host.advance(TimeDelta::from_millis(1));
    (0..15).for_each(|_| host.send());
    host.advance(TimeDelta::from_millis(90));
    host.ack(18);
    host.ack(1);
    // The 14 in flight are fewer than the earlier 18 plus the 19 delivered since.
    assert_eq!((phase(&host), host.cwnd()), (None, segments(18 + 19)));
    assert_eq!(ssthresh(&host), None);
}

#[test]
//= rfc9959 3.3-9 test
fn unvalidated_phase_lasts_at_most_a_round_trip() {
    let mut host = jumped();
    host.advance(RTT);
    host.send();
    assert_eq!(phase(&host), Some(ResumePhase::Unvalidated));
    host.advance(TimeDelta::from_millis(1));
    host.send();
    assert_eq!(phase(&host), Some(ResumePhase::Validating));
    assert_eq!(host.cwnd(), segments(20), "the flight, which exceeds the 18 sent before the jump");
}

#[test]
//= rfc9959 3.4-1 3.4-3 test
fn validation_is_slow_start_until_the_last_unvalidated_packet() {
    let mut host = validating();
    assert_eq!(host.cwnd(), segments(100 + 8), "L segments for the stretch ACK");
    for _ in 0..81 {
        host.ack(1);
    }
    assert_eq!((phase(&host), host.cwnd()), (Some(ResumePhase::Validating), segments(189)));
    host.ack(1);
    assert_eq!((phase(&host), ssthresh(&host)), (None, None));
}

#[test]
//= rfc9959 3.4-2 3.5-2 3.5-6 test
fn congestion_on_trial_reduces_to_half_of_pipe_size() {
    for report in
        [Report { lost: 1, ..Report::default() }, Report { ce_packets: 1, ..Report::default() }]
    {
        let mut host = validating();
        (0..22).for_each(|_| host.ack(1));
        // 18 before the jump, 18 + 22 delivered since, and one by the ACK that reports the loss.
        host.feedback(Report { acked: 1, una_advanced: true, ..report });
        assert_eq!(phase(&host), Some(ResumePhase::SafeRetreat));
        assert_eq!(host.cwnd(), segments(59) / 2);
        assert_eq!(host.cc.snapshot().state, "Recovery");
    }
}

#[test]
//= rfc9959 3.5-3 3.5-4 3.5-5 test
fn retreat_lasts_until_the_last_unvalidated_packet_and_sets_ssthresh() {
    let mut host = validating();
    host.lose(1);
    let cwnd = host.cwnd();
    assert_eq!(cwnd, segments(37) / 2);
    for _ in 0..79 {
        host.ack(1);
        assert_eq!((phase(&host), host.cwnd()), (Some(ResumePhase::SafeRetreat), cwnd));
    }
    host.ack(1);
    assert_eq!((host.cc.snapshot().state, host.cwnd()), ("SlowStart", cwnd));
    // 18 before the jump, and 18 + 81 delivered since.
    assert_eq!(ssthresh(&host), Some(segments(117) / 2));
    host.advance(TimeDelta::from_millis(1));
    host.fill();
    host.advance(RTT);
    host.ack(1);
    assert_eq!(host.cwnd(), cwnd + segments(1), "slow start from there");
}

/// One ACK may both report the loss and acknowledge the last unvalidated packet.
#[test]
fn even_a_short_retreat_is_reported_to_the_host() {
    let mut host = validating();
    host.feedback(Report { lost: 1, acked: 81, ..Report::default() });
    for _ in 0..20 {
        assert_eq!(phase(&host), Some(ResumePhase::SafeRetreat));
        host.round();
    }
    assert_eq!(host.cc.snapshot().state, "CongestionAvoidance");
    resume(&mut host, 200);
    assert_eq!(phase(&host), Some(ResumePhase::SafeRetreat));
    host.cc.on_path(host.now, PathEvent::Migrated);
    assert_eq!(phase(&host), None);
}

#[test]
//= rfc9959 3.3-6 test
fn loss_before_validation_is_a_retreat_too() {
    let mut host = jumped();
    host.lose(1);
    assert_eq!(phase(&host), Some(ResumePhase::SafeRetreat));
    assert_eq!(host.cwnd(), segments(19) / 2);
    assert_eq!(host.cc.control().pacing_rate, None);
}

#[test]
fn spurious_loss_does_not_undo_a_retreat() {
    let mut host = validating();
    host.lose(1);
    let cwnd = host.cwnd();
    host.cc.on_spurious(host.now, &host.missing());
    assert_eq!((phase(&host), host.cwnd()), (Some(ResumePhase::SafeRetreat), cwnd));
}

#[test]
//= rfc9959 3.6-1 test
fn timeout_ends_a_trial_and_counts_delivered_bytes() {
    let mut host = validating();
    host.cc.on_timeout(host.now, Timeout::Retransmission);
    assert_eq!((phase(&host), host.cwnd()), (None, segments(1)));
    assert_eq!(ssthresh(&host), Some(segments(36) / 2), "18 before the jump, 18 delivered");
}

/// The packets in flight arrive after all, but the unvalidated jump is not restored.
#[test]
fn spurious_timeout_does_not_restore_a_jump() {
    for mut host in [jumped(), validating()] {
        let lost = host.time_out();
        host.cc.on_spurious(host.now, &lost);
        assert_eq!((phase(&host), host.cwnd()), (None, segments(1)));
        assert!(ssthresh(&host).is_some_and(|ssthresh| ssthresh <= segments(18)));
    }
}

#[test]
//= rfc9959 3.2-4 test
fn migration_ends_a_trial() {
    let mut host = jumped();
    host.cc.on_path(host.now, PathEvent::Migrated);
    assert_eq!((phase(&host), host.cwnd()), (None, segments(10)));
    assert_eq!(host.cc.control().pacing_rate, None);
}

/// Data paced over a round trip returns as an ACK train of that length.
#[test]
fn cubic_does_not_mistake_a_jump_for_a_long_ack_train() {
    let mut host = Host::new(crate::cubic::Cubic::new(&settings(10)));
    let hint = ResumeHint { saved_cwnd: segments(200), saved_rtt: RTT };
    host.cc.on_path(host.now, PathEvent::Resume(hint));
    host.fill();
    host.advance(RTT);
    (0..10).for_each(|_| host.ack(1));
    assert_eq!(host.cc.snapshot().resume, Some(ResumePhase::Unvalidated));
    pace(&mut host, 100);
    assert_eq!(host.cc.snapshot().resume, Some(ResumePhase::Validating));
    for _ in 0..80 {
        host.ack(1);
        host.fill();
        host.advance(TimeDelta::from_millis(1));
    }
    assert_eq!(host.cc.snapshot().state, "SlowStart");
    assert_eq!(host.cwnd(), segments(180));
}

/// Slow start ends by an ACK train, long before a large initial window is acknowledged, or by a
/// delay that rose for five rounds before the hint.
#[test]
fn hint_is_dropped_when_cubics_slow_start_ends() {
    for (delayed_rounds, spacing_ms) in [(0, 2), (5, 0)] {
        let mut host = Host::new(crate::cubic::Cubic::new(&settings(60)));
        for round in 0..=delayed_rounds {
            host.rtt = TimeDelta::from_millis(if round == 0 { 100 } else { 120 });
            if delayed_rounds > 0 {
                host.round();
            }
        }
        let hint = ResumeHint { saved_cwnd: segments(4_000), saved_rtt: RTT };
        host.cc.on_path(host.now, PathEvent::Resume(hint));
        assert_eq!(host.cc.snapshot().resume, Some(ResumePhase::Reconnaissance));
        host.fill();
        host.advance(RTT);
        for _ in 0..200 {
            assert_ne!(host.cc.snapshot().resume, Some(ResumePhase::Unvalidated));
            host.ack(1);
            host.fill();
            host.advance(TimeDelta::from_millis(spacing_ms));
        }
        assert_eq!(host.cc.snapshot().state, "CongestionAvoidance");
        assert_eq!(host.cc.snapshot().resume, None);
    }
}
