//! The window and the quantum: recovery, timeouts, rounding.

use uncork_units::{Rate, Ratio, Time, TimeDelta};

use crate::bbr1::{Bbr1, Mode};
use crate::script::{Host, MSS, Report, segments, settings};
use crate::{Controller, PathEvent, Timeout};

/// A connection with 20 packets in flight, whose ACKs are due.
fn host() -> Host<Bbr1> {
    let mut host = Host::new(Bbr1::new(&settings(20)));
    assert_eq!(host.fill(), 20);
    host.advance(TimeDelta::from_millis(100));
    host
}

fn lose_without_ack(host: &mut Host<Bbr1>, lost: usize) {
    host.feedback(Report { lost, ..Report::default() });
}

/// The next round trip begins: what leaves now leaves after what happened before.
fn next_rtt(host: &mut Host<Bbr1>) {
    host.advance(TimeDelta::from_millis(100));
}

#[test]
fn startup_grows_by_what_is_delivered() {
    let mut host = host();
    host.ack(5);
    assert_eq!(host.cwnd(), segments(25));
}

#[test]
fn recovery_begins_with_what_is_in_flight_and_what_arrived() {
    let mut host = host();
    host.lose(2);
    assert_eq!(host.cwnd(), segments(17 + 1));
    assert!(host.cc.snapshot().in_recovery);
}

#[test]
fn the_first_round_of_recovery_sends_a_packet_for_each_that_arrives() {
    let mut host = host();
    host.lose(2);
    assert_eq!(host.fill(), 1);
    for _ in 0..10 {
        host.ack(1);
        assert_eq!(host.fill(), 1);
    }
    assert_eq!(host.cwnd(), segments(18));
}

/// The round of conservation begins with the loss, whatever round was under way.
#[test]
fn what_left_before_the_loss_does_not_end_the_first_round_of_recovery() {
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
fn further_losses_leave_the_window_too() {
    let mut host = host();
    host.lose(2);
    host.feedback(Report { lost: 3, acked: 2, ..Report::default() });
    assert_eq!(host.in_flight(), 12);
    assert_eq!(host.cwnd(), segments(18 - 3));
}

#[test]
fn recovery_ends_with_the_window_of_before() {
    let mut host = host();
    host.lose(2);
    host.fill();
    host.ack(16);
    assert!(host.cc.snapshot().in_recovery, "one packet from before the loss is still out");
    host.fill();
    next_rtt(&mut host);
    host.ack(2);
    assert!(!host.cc.snapshot().in_recovery);
    assert!(host.cwnd() >= segments(20), "{}", host.cwnd());
}

/// No ACK, no new information on what arrives: the retransmission must be able to leave.
#[test]
fn a_loss_timer_leaves_the_window_to_the_next_ack() {
    let mut host = host();
    lose_without_ack(&mut host, 3);
    assert_eq!(host.cwnd(), segments(20));
    host.ack(1);
    assert_eq!(host.cwnd(), segments(16 + 1));
}

/// Rounds until the timeout's recovery is over, and what they delivered, in packets.
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

/// Whatever a host says of the oldest data outstanding: this one, like QUIC's, has nothing older than
/// the timeout at once.
#[test]
fn a_timeout_leaves_one_packet_and_is_over_when_all_that_was_in_flight_has_arrived() {
    let mut host = host();
    host.time_out();
    assert_eq!(host.cwnd(), segments(1));
    let (rounds, delivered) = rounds_of_repair(&mut host);
    assert!((20..40).contains(&delivered), "{delivered}");
    assert!(rounds > 2, "{rounds}");
    assert!(host.cwnd() >= segments(20));
}

#[test]
fn a_timeout_adds_one_packet_to_what_it_left_in_flight() {
    let mut host = host();
    host.cc.on_timeout(host.now, Timeout::Retransmission);
    assert_eq!(host.cwnd(), segments(1), "all is presumed lost");
    lose_without_ack(&mut host, 15);
    assert_eq!(host.cwnd(), segments(5 + 1));
}

#[test]
fn a_second_timeout_does_not_forget_the_window_of_before() {
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

/// QUIC finds persistent congestion by an ACK, whose feedback has the losses and the delivery.
#[test]
fn persistent_congestion_found_by_an_ack_ends_too() {
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

/// Linux repairs it in CA_CWR, which BBRv1 ignores, as it ignores marks.
#[test]
fn a_loss_that_a_probe_repaired_and_a_mark_change_nothing() {
    let mut host = host();
    let signs = Report { repaired_by_probe: true, ce_packets: 1, ..Report::default() };
    host.feedback(Report { acked: 1, ..signs });
    assert!(!host.cc.snapshot().in_recovery);
    assert_eq!(host.cwnd(), segments(21));
}

#[test]
fn a_probe_concludes_nothing() {
    let mut host = host();
    let before = host.cc.control();
    host.cc.on_timeout(host.now, Timeout::Probe);
    assert_eq!(host.cc.control(), before);
    assert!(!host.cc.snapshot().in_recovery);
}

#[test]
fn spurious_losses_give_the_window_back_at_once() {
    let mut host = host();
    host.lose(2);
    let missing = host.missing();
    host.cc.on_spurious(host.now, &missing[..1]);
    assert_eq!(host.cwnd(), segments(18), "one of two is no proof");
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
fn a_larger_packet_raises_the_floor() {
    let mut host = host();
    host.cc.on_path(host.now, PathEvent::MtuChanged { mss: 9_000 });
    assert_eq!(host.cwnd(), 4 * 9_000);
}

#[test]
fn another_path_is_an_unknown_path() {
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
    assert_eq!((snapshot.max_bw, snapshot.min_rtt), (None, None), "the old path's packets");
    assert_eq!((snapshot.round_count, host.cwnd()), (0, segments(20)));
}

/// A host that goes on reporting the old path's packets, lost and delivered, spoils nothing.
#[test]
fn late_news_of_the_old_path_is_ignored() {
    let mut host = host();
    host.cc.on_path(host.now, PathEvent::Migrated);
    host.lose(3);
    let missing = host.missing();
    assert!(!host.cc.snapshot().in_recovery);
    assert_eq!(host.cwnd(), segments(20));
    // A loss on the new path is not undone by a packet of the old one that arrived.
    host.advance(TimeDelta::from_millis(1));
    host.ack(host.in_flight());
    host.fill();
    next_rtt(&mut host);
    host.lose(1);
    host.cc.on_spurious(host.now, &missing[..1]);
    assert!(host.cc.snapshot().in_recovery);
}

/// 1 MB/s delivers 10 kB while the pacer waits 10 ms; a sender that raises its flight counts the two
/// packets that leave then.
#[test]
fn the_flight_is_judged_as_it_will_be_when_the_next_packet_leaves() {
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

/// A millisecond of the rate: one packet below 1.2 Mbit/s, two above, at most 64 KB.
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

/// 1 MB/s over 100 ms is 69.1 packets; with three quanta of two packets it is 75.1, and even 76.
#[test]
fn the_target_has_room_for_three_quanta_and_is_even() {
    let initial_rtt = Some(TimeDelta::from_millis(100));
    let mut bbr = Bbr1::new(&crate::Settings { initial_rtt, ..settings(10) });
    bbr.pacing_rate = Rate::from_mbit(8);
    let target = bbr.inflight(Rate::from_bytes_per_sec(1_000_000), Ratio::ONE);
    assert_eq!(target, segments(76));
}

#[test]
fn the_target_of_an_absurd_path_is_all_there_is() {
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
