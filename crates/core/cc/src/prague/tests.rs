//! Prague over scripted paths.

use uncork_units::{Rate, TimeDelta};

use super::*;
use crate::script::{Host, MSS, Report, segments, settings};

fn host(window: u64) -> Host<Prague> {
    Host::new(Prague::new(&settings(window).with_scalable_marks(true)))
}

/// Without ECT(1) marks come from queues that expect the response to a loss.
#[test]
fn marks_of_a_host_without_ect1_are_losses() {
    let mut host = Host::new(Prague::new(&settings(40)));
    assert!(host.cc.found_classic_queue());
    host.fill();
    host.advance(host.rtt);
    host.feedback(Report { acked: 1, ce_packets: 1, una_advanced: true, ..Report::default() });
    assert_eq!(host.cc.snapshot().ssthresh, Some(segments(28)), "CUBIC's 0.7");
}

/// A round trip in which the window is sent, and every `every`-th packet is marked; `0` marks none.
fn marked_round(host: &mut Host<Prague>, count: &mut u64, every: u64) {
    host.fill();
    host.advance(host.rtt);
    for _ in 0..host.in_flight() {
        *count += 1;
        let ce_packets = u32::from(every > 0 && *count % every == 0);
        host.feedback(Report { acked: 1, ce_packets, una_advanced: true, ..Report::default() });
        host.fill();
    }
}

/// The window in bytes after many round trips with a share of 1 / `every` of marked packets.
fn steady_window(rtt: TimeDelta, every: u64) -> u64 {
    let mut host = host(100);
    host.rtt = rtt;
    let mut count = 0;
    let (mut sum, mut rounds) = (0, 0);
    let round_trips = 4_000;
    for round in 0..round_trips {
        marked_round(&mut host, &mut count, every);
        if round >= round_trips / 2 {
            sum += host.cc.base.window.cwnd();
            rounds += 1;
        }
    }
    sum / rounds
}

/// r = 2 (1 - p) / p segments per 25 ms: a share p of marks determines the rate at any round-trip time. Below
/// 25 ms a reduction waits for the first mark after 25 ms, so there are fewer.
#[test]
//= prague-04 2.4.4-1 2.4.4-2 2.4.4-4 test
//= prague-04 2.3.2-1 2.3.2-2 test
//= rfc9331 4.3-1 4.3-7 test
fn rate_follows_from_the_share_of_marks_at_any_rtt() {
    for every in [20, 50, 200] {
        let expected = Rate::of(segments(2 * (every - 1)), TimeDelta::from_millis(25));
        for rtt in [5, 10, 25, 50, 100].map(TimeDelta::from_millis) {
            let rate = Rate::of(steady_window(rtt, every), rtt);
            let percent = rate.bytes_per_sec() * 100 / expected.bytes_per_sec();
            assert!(
                (95..=135).contains(&percent),
                "1/{every}, {rtt:?}: {percent} % of {expected:?}"
            );
        }
    }
}

#[test]
//= prague-04 2.4.2-1 2.4.2-2 test
fn first_mark_ends_slow_start_at_half_the_window() {
    let mut host = host(40);
    host.fill();
    host.advance(host.rtt);
    host.feedback(Report { acked: 1, ce_packets: 1, una_advanced: true, ..Report::default() });
    let snapshot = host.cc.snapshot();
    assert_eq!(snapshot.state, "CongestionAvoidance");
    assert!(!snapshot.in_recovery, "nothing is lost");
    assert_eq!(host.cwnd(), segments(40) / 2);
}

#[test]
//= prague-04 2.4.2-1 2.4.4-1 test
fn marks_of_one_round_trip_reduce_once() {
    let mut host = host(40);
    let mut count = 0;
    marked_round(&mut host, &mut count, 1);
    let after_first = host.cwnd();
    // Alpha is zero until a period of marks has ended.
    assert_eq!(after_first, segments(40) / 2);
    marked_round(&mut host, &mut count, 1);
    assert!(host.cwnd() < after_first && host.cwnd() > after_first * 3 / 4, "{}", host.cwnd());
}

#[test]
//= prague-04 2.4.3-1 2.4.3-2 2.4.3-3 test
fn marked_packets_do_not_grow_the_window() {
    let grown = |ce_packets: u32| {
        let mut host = host(40);
        let mut count = 0;
        marked_round(&mut host, &mut count, 40);
        (0..3).for_each(|_| marked_round(&mut host, &mut count, 0));
        let before = host.cc.base.window.cwnd();
        // Too early for another reduction.
        host.cc.reduced_at = host.now;
        host.feedback(Report { acked: 4, ce_packets, una_advanced: true, ..Report::default() });
        host.cc.base.window.cwnd() - before
    };
    assert!(grown(0) > 0);
    assert_eq!(grown(4), 0);
}

#[test]
//= prague-04 2.4.1-1 test
//= rfc9331 4.3-3 test
fn loss_is_answered_as_by_cubic() {
    let mut host = host(40);
    let mut count = 0;
    marked_round(&mut host, &mut count, 20);
    let window = host.cc.base.window.cwnd();
    host.fill();
    host.advance(host.rtt);
    host.lose(1);
    assert!(host.cc.snapshot().in_recovery);
    let ssthresh = host.cc.snapshot().ssthresh.expect("a loss");
    assert!(ssthresh <= window * 3 / 4, "{ssthresh} of {window}");
    assert_eq!(host.cc.regime, Regime::Loss);
}

#[test]
//= prague-04 2.5-1 2.5-2 test
//= rfc9331 4.3-10 test
fn bursts_last_a_quarter_of_a_millisecond() {
    let mut host = host(40);
    let mut count = 0;
    (0..20).for_each(|_| marked_round(&mut host, &mut count, 40));
    let control = host.cc.control();
    let rate = control.pacing_rate.expect("it paces");
    assert_eq!(rate, Rate::of(host.cc.base.window.cwnd(), host.rtt));
    assert_eq!(
        control.send_quantum,
        rate.bytes_in(TimeDelta::from_micros(250)).max(u64::from(MSS))
    );
}

/// The rate falls below two segments per round trip, while the window that the host sees does not.
#[test]
//= rfc9331 4.3-8 test
fn every_packet_marked_leaves_less_than_two_segments_per_round_trip() {
    let mut host = host(10);
    host.rtt = TimeDelta::from_millis(5);
    let mut count = 0;
    (0..2_000).for_each(|_| marked_round(&mut host, &mut count, 1));
    let control = host.cc.control();
    assert_eq!(control.cwnd, segments(2));
    let rate = control.pacing_rate.expect("it paces");
    assert!(rate < Rate::of(segments(2), host.rtt), "{rate:?}");
    assert!(rate >= MIN_RATE, "{rate:?}");
}

/// A flow with a window below two segments, on a path of `rtt`.
fn below_two_segments(rtt: TimeDelta) -> Host<Prague> {
    let mut host = host(10);
    host.rtt = rtt;
    let mut count = 0;
    (0..200).for_each(|_| marked_round(&mut host, &mut count, 1));
    assert!(host.cc.base.window.cwnd() < segments(2), "{}", host.cc.base.window.cwnd());
    host
}

/// The rate and the window in bytes.
fn rate_and_window(host: &Host<Prague>) -> (Rate, u64) {
    (host.cc.pacing_rate, host.cc.base.window.cwnd())
}

#[test]
//= rfc9331 4.3-8 test
fn loss_does_not_raise_a_window_below_two_segments() {
    let mut host = below_two_segments(TimeDelta::from_millis(5));
    let (rate, window) = rate_and_window(&host);
    host.fill();
    host.advance(host.rtt);
    host.lose(1);
    assert!(host.cc.snapshot().in_recovery);
    while host.cc.snapshot().in_recovery {
        assert!(host.cc.pacing_rate <= rate, "{:?} after {rate:?}", host.cc.pacing_rate);
        host.fill();
        host.advance(host.rtt);
        host.ack(1);
    }
    let after = host.cc.base.window.cwnd();
    assert!(after <= window, "{after} after {window}");
}

#[test]
//= rfc9331 4.3-8 test
fn timeout_does_not_raise_a_window_below_two_segments() {
    for timeout in [Timeout::Retransmission, Timeout::Persistent] {
        let mut host = below_two_segments(TimeDelta::from_millis(5));
        let before = rate_and_window(&host);
        host.fill();
        host.advance(TimeDelta::from_millis(300));
        host.cc.on_timeout(host.now, timeout);
        host.feedback(Report { lost: 1, ..Report::default() });
        let after = rate_and_window(&host);
        assert!(after.0 <= before.0 && after.1 <= before.1, "{timeout:?}: {after:?}, {before:?}");
    }
}

#[test]
fn undo_and_larger_packets_leave_a_window_below_two_segments() {
    let mut host = below_two_segments(TimeDelta::from_millis(5));
    let before = (rate_and_window(&host), host.cc.snapshot().ssthresh);
    host.fill();
    host.advance(host.rtt);
    host.lose(1);
    let missing = host.missing();
    host.cc.on_spurious(host.now, &missing);
    assert_eq!((rate_and_window(&host), host.cc.snapshot().ssthresh), before, "undo");
    host.cc.on_path(host.now, PathEvent::MtuChanged { mss: 2 * MSS });
    assert_eq!((rate_and_window(&host), host.cc.snapshot().ssthresh), before, "larger packets");
}

/// 100 kbit/s are 7,500 bytes in a round trip of 600 ms.
#[test]
//= prague-04 2.4.2-2 test
fn mark_does_not_raise_a_window_below_the_smallest_rate() {
    let mut host = host(40);
    host.rtt = TimeDelta::from_millis(600);
    let mut count = 0;
    (0..3).for_each(|_| marked_round(&mut host, &mut count, 20));
    (0..2).for_each(|_| marked_round(&mut host, &mut count, 0));
    host.advance(TimeDelta::from_secs(1));
    host.time_out();
    host.fill();
    host.advance(host.rtt);
    let before = host.cc.base.window.cwnd();
    host.feedback(Report { acked: 1, ce_packets: 1, una_advanced: true, ..Report::default() });
    let after = host.cc.base.window.cwnd();
    assert!(after <= before, "{after} after {before}");
}

/// Alpha is known by then, so the window is not halved as that of the first slow start is.
#[test]
//= prague-04 2.4.2-2 test
fn mark_in_the_slow_start_after_a_timeout_reduces_by_half_of_alpha() {
    let mut host = host(40);
    let mut count = 0;
    (0..30).for_each(|_| marked_round(&mut host, &mut count, 20));
    host.advance(TimeDelta::from_secs(1));
    host.time_out();
    (0..3).for_each(|_| marked_round(&mut host, &mut count, 0));
    assert!(host.cc.base.window.in_slow_start());
    host.fill();
    host.advance(host.rtt);
    let before = host.cc.base.window.cwnd();
    host.feedback(Report { acked: 1, ce_packets: 1, una_advanced: true, ..Report::default() });
    let after = host.cc.base.window.cwnd();
    assert!(after < before && after > before * 9 / 10, "{after} after {before}");
}

/// The reduction by a mark is real congestion, also where the loss before it was not.
#[test]
fn undo_of_a_loss_does_not_take_back_a_later_mark() {
    let mut host = host(40);
    let mut count = 0;
    (0..10).for_each(|_| marked_round(&mut host, &mut count, 10));
    host.fill();
    host.advance(host.rtt);
    host.lose(1);
    let missing = host.missing();
    host.advance(host.rtt);
    while host.cc.snapshot().in_recovery {
        host.fill();
        host.ack(1);
    }
    host.fill();
    host.advance(host.rtt);
    host.feedback(Report { acked: 1, ce_packets: 1, una_advanced: true, ..Report::default() });
    assert_eq!(host.cc.regime, Regime::Marks);
    let before = (rate_and_window(&host), host.cc.snapshot().ssthresh);
    host.cc.on_spurious(host.now, &missing);
    assert_eq!((rate_and_window(&host), host.cc.snapshot().ssthresh), before);
}

/// Marks at a queue of 8 ms, which no queue for L4S has.
#[test]
//= rfc9331 4.3-4 4.3-5 4.3-6 test
fn standing_queue_with_marks_is_a_classic_one() {
    let mut host = host(40);
    host.rtt = TimeDelta::from_millis(30);
    let mut count = 0;
    (0..5).for_each(|_| marked_round(&mut host, &mut count, 0));
    assert!(!host.cc.found_classic_queue());
    (host.rtt, host.queue) = (TimeDelta::from_millis(38), TimeDelta::from_millis(8));
    for _ in 0..100 {
        marked_round(&mut host, &mut count, 20);
    }
    assert!(host.cc.found_classic_queue());
    // From now on a mark is a loss.
    host.fill();
    host.advance(host.rtt);
    let window = host.cwnd();
    host.feedback(Report { acked: 1, ce_packets: 1, una_advanced: true, ..Report::default() });
    let ssthresh = host.cc.snapshot().ssthresh.expect("a mark");
    assert!(ssthresh <= window * 3 / 4, "{ssthresh} of {window}");
}

#[test]
//= rfc9331 4.3-6 test
fn marks_at_a_millisecond_are_those_of_l4s() {
    let mut host = host(40);
    host.rtt = TimeDelta::from_millis(30);
    let mut count = 0;
    (0..5).for_each(|_| marked_round(&mut host, &mut count, 0));
    (host.rtt, host.queue) = (TimeDelta::from_millis(31), TimeDelta::from_millis(1));
    (0..1_000).for_each(|_| marked_round(&mut host, &mut count, 20));
    assert!(!host.cc.found_classic_queue());
}

/// At 1 Mbit/s a packet takes 12 ms, which the handshake did not.
#[test]
//= rfc9331 4.3-5 test
fn three_packets_of_a_slow_link_are_no_classic_queue() {
    let mut host = host(4);
    let packet = Rate::from_mbit(1).time_for(MSS.into());
    // The smallest sample of the connection is that of the handshake.
    (host.rtt, host.queue) = (TimeDelta::from_millis(20) + packet, packet);
    let mut count = 0;
    (0..3).for_each(|_| marked_round(&mut host, &mut count, 0));
    host.rtt += packet + packet;
    host.queue = packet.times(3);
    for _ in 0..100 {
        marked_round(&mut host, &mut count, 1);
    }
    assert!(!host.cc.found_classic_queue(), "{:?}", host.cc.test);
}

/// A path that becomes longer while nothing is marked.
#[test]
fn smallest_rtt_of_minutes_ago_does_not_count() {
    let mut host = host(40);
    let mut count = 0;
    host.rtt = TimeDelta::from_millis(30);
    (0..5).for_each(|_| marked_round(&mut host, &mut count, 0));
    (host.rtt, host.queue) = (TimeDelta::from_millis(38), TimeDelta::from_millis(8));
    for _ in 0..130 {
        host.advance(TimeDelta::from_secs(1));
        host.fill();
        host.ack(1);
    }
    (0..100).for_each(|_| marked_round(&mut host, &mut count, 20));
    assert!(!host.cc.found_classic_queue());
}

/// After seconds without a mark growth is CUBIC's, so that new capacity is found.
#[test]
fn marks_that_cease_leave_cubic() {
    let mut host = host(40);
    let mut count = 0;
    marked_round(&mut host, &mut count, 20);
    assert_eq!(host.cc.regime, Regime::Marks);
    (0..12).for_each(|_| marked_round(&mut host, &mut count, 0));
    assert_eq!(host.cc.regime, Regime::Loss);
}

#[test]
fn migration_forgets_the_path() {
    let mut host = host(40);
    let mut count = 0;
    (0..30).for_each(|_| marked_round(&mut host, &mut count, 10));
    host.cc.on_path(host.now, PathEvent::Migrated);
    assert_eq!((host.cc.regime, host.cc.found_classic_queue()), (Regime::Loss, false));
    assert_eq!(host.cc.snapshot().ssthresh, None);
}

/// Marks count as losses from then on, also on another path.
#[test]
fn host_without_ect1_leaves_cubic() {
    let mut host = host(40);
    let mut count = 0;
    (0..30).for_each(|_| marked_round(&mut host, &mut count, 10));
    assert_eq!(host.cc.regime, Regime::Marks);
    host.cc.on_path(host.now, PathEvent::ClassicEcn);
    assert!(host.cc.found_classic_queue());
    let before = host.cc.control().cwnd;
    marked_round(&mut host, &mut count, 10);
    assert!(host.cc.control().cwnd * 10 <= before * 8, "{} of {before}", host.cc.control().cwnd);
    host.cc.on_path(host.now, PathEvent::Migrated);
    assert!(host.cc.found_classic_queue());
}
