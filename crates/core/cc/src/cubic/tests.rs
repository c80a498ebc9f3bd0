use uncork_units::TimeDelta;

use super::*;
use crate::script::{Host, MSS, Report, segments, settings};

fn host(initial_window: u64) -> Host<Cubic> {
    Host::new(Cubic::new(&settings(initial_window)))
}

/// A host in congestion avoidance with a full window of `window` segments, after a loss at
/// `window` / 0.7.
fn avoiding(window: u64) -> Host<Cubic> {
    let mut host = host(window * 10 / 7);
    host.lose_one_and_recover();
    assert_eq!(host.cc.snapshot().state, "CongestionAvoidance");
    assert_eq!(host.cwnd(), segments(window));
    host.advance(TimeDelta::from_millis(1));
    host
}

/// The window after `rounds` more rounds.
fn after_rounds(host: &mut Host<Cubic>, rounds: u64) -> u64 {
    (0..rounds).for_each(|_| host.round());
    host.cwnd() / segments(1)
}

#[test]
//= rfc9937 5-1 test
//= rfc9438 4.6-1 4.6-2 test
fn loss_reduces_the_window_to_seven_tenths() {
    let mut host = host(20);
    host.fill();
    host.advance(host.rtt);
    host.lose(1);
    assert_eq!(host.cc.snapshot().state, "Recovery");
    assert_eq!(host.cc.snapshot().ssthresh, Some(segments(14)));
    host.advance(host.rtt);
    while host.cc.snapshot().in_recovery {
        host.fill();
        host.ack(1);
    }
    assert_eq!(host.cwnd(), segments(14));
}

#[test]
//= rfc9438 4.2-2 4.4-1 4.5-1 test
fn window_returns_to_the_plateau_after_k() {
    // W_max = 300: K = cbrt(300 * 0.3 / 0.4) = 6.08 s, 61 rounds of 100 ms.
    let mut host = avoiding(210);
    let early = after_rounds(&mut host, 5);
    assert!((229..=231).contains(&early), "0.4 (0.5 - 6.08)^3 + 300 = 230.4, not {early}");
    let half_way = after_rounds(&mut host, 25);
    assert!((287..=290).contains(&half_way), "0.4 (3 - 6.08)^3 + 300 = 288.3, not {half_way}");
    let plateau = after_rounds(&mut host, 31);
    assert!((299..=300).contains(&plateau), "{plateau}");
    let beyond = after_rounds(&mut host, 30);
    assert!((309..=312).contains(&beyond), "0.4 (9.1 - 6.08)^3 + 300 = 311.0, not {beyond}");
}

#[test]
//= rfc9438 4.10-1 4.10-2 4.10-4 test
//= rfc9406 4.2-1 4.2-7 4.2-9 4.3-4 test
fn slow_start_ends_when_the_rtt_rises() {
    let mut host = host(10);
    host.round();
    host.round();
    assert_eq!(host.cc.snapshot().state, "SlowStart");
    assert_eq!(host.cwnd(), segments(40));
    // RTT up by an eighth for a round of ACKs: Conservative Slow Start.
    host.rtt = TimeDelta::from_micros(112_500);
    host.round();
    assert_eq!(host.cc.snapshot().state, "CSS");
    assert_eq!(host.cc.snapshot().ssthresh, None);
    // Eight ACKs count in full, the other 32 count a quarter.
    assert_eq!(host.cwnd(), segments(48) + 32 * u64::from(MSS / 4));
    // Four more rounds at a quarter, then congestion avoidance.
    (0..4).for_each(|_| host.round());
    assert_eq!(host.cc.snapshot().state, "CSS");
    let cwnd = host.cwnd();
    assert!(cwnd.abs_diff(segments(136)) < segments(1), "56 * 1.25^4 = 137, not {cwnd} bytes");
    host.round();
    assert_eq!(host.cc.snapshot().state, "CongestionAvoidance");
    assert!(host.cwnd() < cwnd + segments(2));
}

/// A flow in Conservative Slow Start: after two rounds the RTT has risen by a fifth.
fn in_css() -> Host<Cubic> {
    let mut host = host(10);
    host.round();
    host.round();
    host.rtt = TimeDelta::from_millis(120);
    host.round();
    assert_eq!(host.cc.snapshot().state, "CSS");
    host
}

#[test]
//= rfc9406 4.2-8 test
fn slow_start_continues_if_the_rtt_rise_was_jitter() {
    let mut host = in_css();
    host.rtt = TimeDelta::from_millis(100);
    host.round();
    assert_eq!(host.cc.snapshot().state, "SlowStart");
}

#[test]
//= rfc9406 4.2-10 test
fn loss_or_ce_mark_ends_css() {
    for (lost, ce_packets) in [(1, 0), (0, 1)] {
        let mut host = in_css();
        host.advance(host.rtt);
        host.feedback(Report { lost, acked: 1, ce_packets, ..Report::default() });
        assert!(host.cc.snapshot().in_recovery && host.cc.snapshot().ssthresh.is_some());
        while host.cc.snapshot().in_recovery {
            host.fill();
            host.ack(1);
        }
        assert_eq!(host.cc.snapshot().state, "CongestionAvoidance");
    }
}

#[test]
fn slow_start_ends_when_the_acks_span_half_the_round_trip() {
    let mut host = host(40);
    // At 50 ms: 40 ACKs within 40 ms do not end it, 80 within 80 ms do.
    host.spread_round(TimeDelta::from_micros(1_000));
    assert_eq!(host.cc.snapshot().state, "SlowStart");
    assert_eq!(host.cwnd(), segments(80));
    host.spread_round(TimeDelta::from_micros(1_000));
    assert_eq!(host.cc.snapshot().state, "CongestionAvoidance");
    // The ACK after 51 ms is the 52nd.
    assert_eq!(host.cc.snapshot().ssthresh, Some(segments(132)));
}

/// Data paced over the round trip returns evenly spread.
#[test]
fn long_ack_train_does_not_end_slow_start_of_a_pacing_host() {
    let settings = Settings { paced: true, ..settings(40) };
    let mut host = Host::new(Cubic::new(&settings));
    host.spread_round(TimeDelta::from_micros(1_000));
    host.spread_round(TimeDelta::from_micros(500));
    assert_eq!((host.cc.snapshot().state, host.cwnd()), ("SlowStart", segments(160)));
}

#[test]
fn small_window_has_no_ack_train() {
    let mut host = host(6);
    host.rtt = TimeDelta::from_millis(10);
    host.spread_round(TimeDelta::from_micros(1_500));
    assert_eq!(host.cc.snapshot().state, "SlowStart");
    assert_eq!(host.cwnd(), segments(12));
}

#[test]
//= rfc9438 4.8-1 4.8-2 4.8-3 4.10-1 4.10-4 test
fn timeout_restarts_slow_start_then_begins_at_a_plateau() {
    let mut host = avoiding(70);
    host.time_out();
    assert_eq!(host.cwnd(), segments(1));
    assert_eq!(host.cc.snapshot().ssthresh, Some(segments(49)));
    (0..6).for_each(|_| host.round());
    assert_eq!(host.cc.snapshot().state, "CongestionAvoidance");
    // K = 0: after a second the curve has risen by 0.4 segments, while Reno adds one per round.
    let window = after_rounds(&mut host, 10);
    assert!((58..=60).contains(&window), "{window}");
}

#[test]
//= rfc9438 4.10-3 test
//= rfc9406 4.3-7 test
fn slow_start_after_a_timeout_has_no_hystart() {
    let mut host = avoiding(140);
    host.time_out();
    (0..4).for_each(|_| host.round());
    host.rtt = TimeDelta::from_millis(200);
    host.round();
    assert_eq!(host.cc.snapshot().state, "SlowStart");
    assert_eq!(host.cwnd(), segments(32));
}

#[test]
//= rfc9438 4.9.2-2 4.9.2-3 test
fn spurious_loss_restores_everything() {
    let mut host = avoiding(210);
    after_rounds(&mut host, 20);
    host.fill();
    host.advance(host.rtt);
    let steady = host.cc.clone();
    let ssthresh = host.cc.snapshot().ssthresh;
    let cwnd = host.cwnd();
    host.lose(1);
    assert_eq!(host.cc.snapshot().state, "Recovery");
    let missing = host.missing();
    host.cc.on_spurious(host.now, &missing);
    assert_eq!(host.cwnd(), cwnd);
    assert_eq!(host.cc.snapshot().ssthresh, ssthresh);
    assert_eq!(host.cc.snapshot().state, "CongestionAvoidance");
    // The curve continues unchanged: same W_max, K, epoch and W_est.
    assert_eq!(host.cc.epoch(host.now), steady.epoch(host.now));
}

/// A flow with a window of 140 segments and a real loss, in recovery, on a host that started hours ago.
fn repairing_on_an_old_host() -> Host<Cubic> {
    let mut host = avoiding(140);
    host.advance(TimeDelta::from_secs(10_000));
    host.lose(1);
    host.fill();
    let rest = host.in_flight() - 1;
    for _ in 0..rest {
        host.ack(1);
        host.fill();
    }
    assert!(host.cc.snapshot().in_recovery, "no packet of the recovery has arrived");
    host
}

/// The epoch that the spurious event ended had not begun: time does not count from the origin of the clock.
#[test]
//= rfc9438 4.2-2 4.9.2-3 test
fn spurious_loss_in_a_recovery_begins_the_epoch() {
    let mut host = repairing_on_an_old_host();
    host.advance(host.rtt);
    host.lose(1);
    let missing = host.missing();
    host.cc.on_spurious(host.now, &missing);
    assert_eq!(host.cwnd(), segments(98));
    let later = after_rounds(&mut host, 5);
    assert!((104..=107).contains(&later), "0.4 (0.5 - 3.74)^3 + 119 = 105.4, not {later}");
}

#[test]
fn spurious_timeout_in_a_recovery_begins_the_epoch() {
    let mut host = repairing_on_an_old_host();
    host.advance(TimeDelta::from_millis(300));
    let lost = host.time_out();
    host.cc.on_spurious(host.now, &lost);
    assert_eq!(host.cwnd(), segments(98));
    let later = after_rounds(&mut host, 5);
    assert!((104..=107).contains(&later), "{later}");
}

#[test]
fn spurious_timeout_restores_everything() {
    let mut host = avoiding(210);
    after_rounds(&mut host, 20);
    host.fill();
    let (steady, cwnd) = (host.cc.clone(), host.cwnd());
    host.advance(TimeDelta::from_millis(300));
    let lost = host.time_out();
    assert_eq!(host.cc.snapshot().state, "SlowStart");
    // A second one continues the episode of the first.
    host.send();
    host.advance(TimeDelta::from_millis(600));
    let more = host.time_out();
    host.cc.on_spurious(host.now, &more);
    assert_eq!(host.cwnd(), segments(1), "the first timeout's packets have not arrived");
    host.cc.on_spurious(host.now, &lost);
    assert_eq!(host.cwnd(), cwnd);
    assert_eq!(host.cc.snapshot().ssthresh, steady.snapshot().ssthresh);
    assert_eq!(host.cc.epoch(host.now), steady.epoch(host.now));
}

#[test]
fn persistent_congestion_in_recovery_is_not_undone() {
    let mut host = avoiding(210);
    host.advance(host.rtt);
    host.lose(2);
    let w_max = host.cc.epoch(host.now);
    host.cc.on_timeout(host.now, Timeout::Persistent);
    let missing = host.missing();
    host.cc.on_spurious(host.now, &missing);
    assert_eq!(host.cwnd(), segments(2));
    assert_ne!(host.cc.epoch(host.now), w_max);
}

#[test]
fn spurious_loss_in_slow_start_resumes_slow_start() {
    let mut host = host(20);
    host.fill();
    host.advance(host.rtt);
    host.lose(1);
    let missing = host.missing();
    host.cc.on_spurious(host.now, &missing);
    assert_eq!(host.cc.snapshot().state, "SlowStart");
    assert_eq!(host.cc.snapshot().ssthresh, None);
    assert_eq!(host.cwnd(), segments(20));
}

#[test]
//= rfc9438 4.2-4 test
fn idle_time_does_not_advance_the_curve() {
    let (mut idle, mut steady) = (avoiding(210), avoiding(210));
    for host in [&mut idle, &mut steady] {
        after_rounds(host, 10);
        // The application stops; everything in flight is acknowledged.
        host.advance(host.rtt);
        let rest = host.in_flight();
        (0..rest).for_each(|_| host.ack(1));
    }
    idle.advance(TimeDelta::from_secs(60));
    assert_eq!(after_rounds(&mut idle, 10), after_rounds(&mut steady, 10));
}

#[test]
//= rfc9438 4.2-4 4.6-3 5.8-1 test
fn unused_window_does_not_advance_the_curve() {
    let mut host = avoiding(210);
    let rest = host.in_flight();
    (0..rest).for_each(|_| host.ack(1));
    // For a minute the application sends ten segments per round.
    for _ in 0..600 {
        (0..10).for_each(|_| host.send());
        host.advance(host.rtt);
        host.ack(10);
    }
    let before = host.cwnd() / segments(1);
    assert!(before < 214, "{before}");
    let window = after_rounds(&mut host, 30);
    assert!((285..=291).contains(&window), "{window} segments, 3 s into the epoch");
}

#[test]
//= rfc9002 7.1-1 test
fn ce_mark_counts_as_a_loss() {
    let mut host = avoiding(70);
    host.feedback(Report { acked: 1, ce_packets: 1, una_advanced: true, ..Report::default() });
    assert_eq!(host.cc.snapshot().ssthresh, Some(segments(49)));
    assert_eq!(host.cc.snapshot().state, "Recovery");
}

#[test]
fn larger_mss_keeps_the_window() {
    let mut host = avoiding(210);
    after_rounds(&mut host, 10);
    let cwnd = host.cwnd();
    host.cc.on_path(host.now, PathEvent::MtuChanged { mss: 2 * MSS });
    assert_eq!(host.cwnd(), cwnd);
    host.ack(1);
    assert!(host.cwnd() - cwnd < segments(1));
}

#[test]
fn migration_resets_the_window() {
    let mut host = avoiding(70);
    host.cc.on_path(host.now, PathEvent::Migrated);
    assert_eq!(host.cwnd(), segments(100));
    assert_eq!(host.cc.snapshot().state, "SlowStart");
    assert_eq!(host.cc.snapshot().ssthresh, None);
}
