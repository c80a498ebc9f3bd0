//! The window and the quantum: recovery, timeouts, rounding.

use uncork_units::{Rate, Ratio, Time, TimeDelta};

use crate::bbr1::{Bbr1, Mode};
use crate::script::{Host, MSS, Report, segments, settings};
use crate::{Controller, PathEvent, Timeout};

/// A connection with 20 packets in flight that are about to be acknowledged.
fn host() -> Host<Bbr1> {
    let mut host = Host::new(Bbr1::new(&settings(20)));
    assert_eq!(host.fill(), 20);
    host.advance(TimeDelta::from_millis(100));
    host
}

fn lose_without_ack(host: &mut Host<Bbr1>, lost: usize) {
    host.feedback(Report { lost, ..Report::default() });
}

/// Advances to the next round trip, so that new packets leave after earlier events.
fn next_rtt(host: &mut Host<Bbr1>) {
    host.advance(TimeDelta::from_millis(100));
}

#[test]
fn startup_grows_by_delivered_bytes() {
    let mut host = host();
    host.ack(5);
    assert_eq!(host.cwnd(), segments(25));
}

#[test]
fn recovery_begins_with_inflight_plus_newly_acked() {
    let mut host = host();
    host.lose(2);
    assert_eq!(host.cwnd(), segments(17 + 1));
    assert!(host.cc.snapshot().in_recovery);
}

#[test]
fn first_round_of_recovery_sends_one_packet_per_packet_delivered() {
    let mut host = host();
    host.lose(2);
    assert_eq!(host.fill(), 1);
    for _ in 0..10 {
        host.ack(1);
        assert_eq!(host.fill(), 1);
    }
    assert_eq!(host.cwnd(), segments(18));
}

/// The round of packet conservation begins with the loss, in the middle of any packet-timed round.
#[test]
fn packets_sent_before_the_loss_do_not_end_the_first_round_of_recovery() {
    let mut host = host();
    host.ack(1);
    assert_eq!(host.fill(), 2);
    host.advance(TimeDelta::from_millis(1));
    host.lose(1);
    let left_before = host.in_flight();
    host.fill();
    for _ in 1..left_before {
        host.ack(1);
        assert_eq!(host.cwnd(), segments(20));
        assert_eq!(host.fill(), 1);
    }
}

#[test]
fn further_losses_reduce_the_window_too() {
    let mut host = host();
    host.lose(2);
    host.feedback(Report { lost: 3, acked: 2, ..Report::default() });
    assert_eq!(host.in_flight(), 12);
    assert_eq!(host.cwnd(), segments(18 - 3));
}

#[test]
fn end_of_recovery_restores_the_window() {
    let mut host = host();
    host.lose(2);
    host.fill();
    host.ack(16);
    assert!(host.cc.snapshot().in_recovery, "one packet sent before the loss is still in flight");
    host.fill();
    next_rtt(&mut host);
    host.ack(2);
    assert!(!host.cc.snapshot().in_recovery);
    assert!(host.cwnd() >= segments(20), "{}", host.cwnd());
}

/// Without an ACK no deliveries are known, but the retransmission must be able to leave.
#[test]
fn loss_timer_defers_the_window_update_to_the_next_ack() {
    let mut host = host();
    lose_without_ack(&mut host, 3);
    assert_eq!(host.cwnd(), segments(20));
    host.ack(1);
    assert_eq!(host.cwnd(), segments(16 + 1));
}

/// Rounds until the recovery from a timeout ends, and the packets they delivered.
fn rounds_of_repair(host: &mut Host<Bbr1>) -> (u64, usize) {
    let (mut rounds, mut delivered) = (0, 0);
    while host.cc.snapshot().in_recovery && rounds < 100 {
        assert!(host.cwnd() < segments(20), "in round {rounds}");
        host.fill();
        next_rtt(host);
        delivered += host.in_flight();
        host.ack(host.in_flight());
        rounds += 1;
    }
    (rounds, delivered)
}

/// Does not depend on the oldest outstanding data: as in QUIC, this host has nothing outstanding
/// that is older than the timeout.
#[test]
fn timeout_allows_one_packet_until_everything_in_flight_is_delivered() {
    let mut host = host();
    host.time_out();
    assert_eq!(host.cwnd(), segments(1));
    let (rounds, delivered) = rounds_of_repair(&mut host);
    assert!((20..40).contains(&delivered), "{delivered}");
    assert!(rounds > 2, "{rounds}");
    assert!(host.cwnd() >= segments(20));
}

#[test]
fn timeout_allows_one_packet_beyond_inflight() {
    let mut host = host();
    host.cc.on_timeout(host.now, Timeout::Retransmission);
    assert_eq!(host.cwnd(), segments(1), "everything is presumed lost");
    lose_without_ack(&mut host, 15);
    assert_eq!(host.cwnd(), segments(5 + 1));
}

#[test]
fn second_timeout_keeps_the_saved_window() {
    let mut host = host();
    host.time_out();
    host.fill();
    next_rtt(&mut host);
    host.time_out();
    let (_, delivered) = rounds_of_repair(&mut host);
    assert!(delivered >= 20, "{delivered}");
    assert!(host.cwnd() >= segments(20));
}

#[test]
fn one_late_retransmission_does_not_undo_two_timeouts() {
    let mut host = host();
    host.time_out();
    host.fill();
    next_rtt(&mut host);
    let retransmission = host.time_out();
    assert_eq!(retransmission.len(), 1);
    host.cc.on_spurious(host.now, &retransmission);
    assert!(host.cc.snapshot().in_recovery);
}

/// QUIC detects persistent congestion on an ACK; its feedback holds both the losses and the
/// delivery.
#[test]
fn persistent_congestion_detected_on_an_ack_ends() {
    let mut host = host();
    host.cc.on_timeout(host.now, Timeout::Persistent);
    host.feedback(Report { lost: 15, acked: 1, ..Report::default() });
    assert!(host.cc.snapshot().in_recovery);
    assert!(host.cwnd() <= segments(4 + 2), "{}", host.cwnd());
    host.fill();
    next_rtt(&mut host);
    host.ack(host.in_flight());
    let (rounds, _) = rounds_of_repair(&mut host);
    assert!(rounds <= 3, "{rounds}");
    // RFC 9002 §7.6.2: the window is not restored.
    assert!(host.cwnd() < segments(20), "{}", host.cwnd());
}

/// Linux handles this repair in CA_CWR, which BBRv1 ignores. It ignores marks too.
#[test]
fn probe_repaired_losses_and_marks_are_ignored() {
    let mut host = host();
    let signs = Report { repaired_by_probe: true, ce_packets: 1, ..Report::default() };
    host.feedback(Report { acked: 1, ..signs });
    assert!(!host.cc.snapshot().in_recovery);
    assert_eq!(host.cwnd(), segments(21));
}

#[test]
fn probe_timeout_leaves_the_window_unchanged() {
    let mut host = host();
    let before = host.cc.control();
    host.cc.on_timeout(host.now, Timeout::Probe);
    assert_eq!(host.cc.control(), before);
    assert!(!host.cc.snapshot().in_recovery);
}

#[test]
fn spurious_losses_restore_the_window_at_once() {
    let mut host = host();
    host.lose(2);
    let missing = host.missing();
    host.cc.on_spurious(host.now, &missing[..1]);
    assert_eq!(host.cwnd(), segments(18), "one of two is not enough");
    host.cc.on_spurious(host.now, &missing[1..]);
    assert_eq!(host.cwnd(), segments(20));
    assert!(!host.cc.snapshot().in_recovery);
}

#[test]
fn persistent_congestion_is_not_undone() {
    let mut host = host();
    host.cc.on_timeout(host.now, Timeout::Persistent);
    lose_without_ack(&mut host, 20);
    let missing = host.missing();
    host.cc.on_spurious(host.now, &missing);
    assert_eq!(host.cwnd(), segments(1));
}

#[test]
fn larger_mss_raises_the_minimum_window() {
    let mut host = host();
    host.cc.on_path(host.now, PathEvent::MtuChanged { mss: 9_000 });
    assert_eq!(host.cwnd(), 4 * 9_000);
}

#[test]
fn migration_resets_the_path_model() {
    let mut host = host();
    for _ in 0..20 {
        host.round();
    }
    assert!(host.cc.snapshot().max_bw.is_some());
    host.advance(TimeDelta::from_millis(1));
    host.cc.on_path(host.now, PathEvent::Migrated);
    let snapshot = host.cc.snapshot();
    assert_eq!((snapshot.state, snapshot.max_bw, snapshot.min_rtt), ("Startup", None, None));
    assert_eq!(host.cwnd(), segments(20));
    host.ack(host.in_flight());
    let snapshot = host.cc.snapshot();
    assert_eq!(
        (snapshot.max_bw, snapshot.min_rtt),
        (None, None),
        "feedback about the old path's packets"
    );
    assert_eq!((snapshot.round_count, host.cwnd()), (0, segments(20)));
}

/// Feedback about lost and delivered packets of the old path has no effect.
#[test]
fn late_feedback_about_the_old_path_is_ignored() {
    let mut host = host();
    host.cc.on_path(host.now, PathEvent::Migrated);
    host.lose(3);
    let missing = host.missing();
    assert!(!host.cc.snapshot().in_recovery);
    assert_eq!(host.cwnd(), segments(20));
    // The arrival of an old path's packet must not undo a loss on the new path.
    host.advance(TimeDelta::from_millis(1));
    host.ack(host.in_flight());
    host.fill();
    next_rtt(&mut host);
    host.lose(1);
    host.cc.on_spurious(host.now, &missing[..1]);
    assert!(host.cc.snapshot().in_recovery);
}

/// 1 MB/s delivers 10 kB while the pacer waits 10 ms. With rising inflight, the two packets that
/// leave then count too.
#[test]
fn inflight_is_predicted_for_the_next_departure() {
    let mut bbr = Bbr1::new(&settings(10));
    let now = Time::ZERO;
    bbr.max_bw.reset(0, 1_000_000);
    bbr.pacing_rate = Rate::from_mbit(8);
    bbr.next_departure = now + TimeDelta::from_millis(10);
    assert_eq!(bbr.in_network_at_departure(now, 50_000), 40_000 + segments(2));
    bbr.mode = Mode::Drain;
    assert_eq!(bbr.in_network_at_departure(now, 50_000), 40_000);
    assert_eq!(bbr.in_network_at_departure(now, 5_000), 0);
}

/// About a millisecond of the rate: one packet below 1.2 Mbit/s, two above, at most 64 KB.
#[test]
fn the_quantum_follows_the_pacing_rate() {
    let quantum = |rate: Rate| {
        let mut bbr = Bbr1::new(&settings(10));
        bbr.pacing_rate = rate;
        bbr.control().send_quantum / u64::from(MSS)
    };
    assert_eq!(quantum(Rate::from_bits_per_sec(1_000_000)), 1);
    assert_eq!(quantum(Rate::from_bits_per_sec(1_200_000)), 2);
    assert_eq!(quantum(Rate::from_mbit(20)), 2);
    assert_eq!(quantum(Rate::from_mbit(100)), 8);
    assert_eq!(quantum(Rate::from_mbit(10_000)), 45);
}

/// 1 MB/s over 100 ms is 69.1 packets. With three quanta of two packets it is 75.1, rounded up to
/// 76.
#[test]
fn target_adds_three_quanta_and_is_even() {
    let initial_rtt = Some(TimeDelta::from_millis(100));
    let mut bbr = Bbr1::new(&crate::Settings { initial_rtt, ..settings(10) });
    bbr.pacing_rate = Rate::from_mbit(8);
    let target = bbr.inflight(Rate::from_bytes_per_sec(1_000_000), Ratio::ONE);
    assert_eq!(target, segments(76));
}

#[test]
fn target_saturates_for_an_absurd_path() {
    let initial_rtt = Some(TimeDelta::MAX);
    let bbr = Bbr1::new(&crate::Settings { mss: 1, initial_rtt, ..settings(10) });
    assert_eq!(bbr.inflight(Rate::MAX, Ratio::ONE), u64::MAX);
}

#[test]
fn the_target_is_the_initial_window_while_the_rtt_is_unknown() {
    let mut bbr = Bbr1::new(&settings(10));
    bbr.pacing_rate = Rate::from_mbit(8);
    assert_eq!(bbr.inflight(Rate::from_mbit(1_000), Ratio::ONE), segments(10 + 3 * 2));
}
