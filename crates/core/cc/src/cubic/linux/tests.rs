use uncork_units::TimeDelta;

use super::*;
use crate::script::{Host, segments, settings};

fn host(initial_window: u64) -> Host<LinuxCubic> {
    Host::new(LinuxCubic::new(&settings(initial_window)))
}

fn state(host: &Host<LinuxCubic>) -> &'static str {
    host.cc.snapshot().state
}

/// The RTT of a round of ACKs at which slow start ended, given the round before at `from_us`.
fn ends_at(from_us: u64, to_us: u64) -> bool {
    let mut host = host(20);
    for rtt_us in [from_us, to_us] {
        host.rtt = TimeDelta::from_micros(rtt_us);
        host.round();
    }
    state(&host) == "CongestionAvoidance"
}

#[test]
fn slow_start_ends_when_the_rtt_has_risen_by_more_than_an_eighth() {
    assert!(!ends_at(80_000, 90_000));
    assert!(ends_at(80_000, 90_001));
    // At least 4 ms, at most 16 ms.
    assert!(!ends_at(8_000, 12_000) && ends_at(8_000, 12_001));
    assert!(!ends_at(400_000, 416_000) && ends_at(400_000, 416_001));
}

/// It ends at once, after eight samples and the ninth: HyStart++ would slow down first.
#[test]
fn slow_start_ends_with_the_ninth_late_sample() {
    let mut host = host(20);
    host.round();
    host.rtt = TimeDelta::from_millis(200);
    host.round();
    // Eight of 40 ACKs made the window grow.
    assert_eq!(host.cc.snapshot().ssthresh, Some(segments(48)));
}

/// At 100 ms, and 1 ms for offload, a train of more than 50.5 ms ends slow start.
#[test]
fn slow_start_ends_when_the_acks_span_half_the_round_trip_and_half_a_millisecond() {
    let mut host = host(40);
    host.spread_round(TimeDelta::from_micros(1_000));
    assert_eq!((state(&host), host.cwnd()), ("SlowStart", segments(80)));
    host.spread_round(TimeDelta::from_micros(250));
    assert_eq!((state(&host), host.cwnd()), ("SlowStart", segments(160)));
    host.spread_round(TimeDelta::from_micros(500));
    // The ACK after 51 ms is the 103rd.
    assert_eq!(host.cc.snapshot().ssthresh, Some(segments(160 + 102)));
}

/// Windows below 16 segments count rounds too: otherwise each round would begin within a burst, and its train would end
/// with it.
#[test]
fn train_is_measured_from_the_first_ack_of_a_burst_with_an_initial_window_of_10() {
    let mut host = host(10);
    for window in [20, 40, 80, 160] {
        host.spread_round(TimeDelta::from_micros(500));
        assert_eq!((state(&host), host.cwnd()), ("SlowStart", segments(window)));
    }
    host.spread_round(TimeDelta::from_micros(500));
    // The ACK after 51 ms is the 103rd.
    assert_eq!(host.cc.snapshot().ssthresh, Some(segments(160 + 102)));
}

#[test]
fn small_window_is_not_judged() {
    let mut host = host(4);
    host.round();
    host.rtt = TimeDelta::from_millis(200);
    host.round();
    assert_eq!((state(&host), host.cwnd()), ("SlowStart", segments(16)));
}

#[test]
fn window_is_always_whole_segments() {
    let mut host = host(10);
    for round in 0..60 {
        match round % 7 {
            6 => host.lose_one_and_recover(),
            _ => host.round(),
        }
        assert_eq!(host.cwnd() % segments(1), 0, "round {round}: {} bytes", host.cwnd());
    }
}

/// 0.7 of 7 segments is 4.9.
#[test]
fn loss_rounds_the_window_down() {
    let mut host = host(7);
    host.lose_one_and_recover();
    assert_eq!(host.cc.snapshot().ssthresh, Some(segments(4)));
}

#[test]
fn window_returns_to_the_plateau_after_k() {
    // W_max = 300: K = cbrt(300 * 0.3 / 0.4) = 6.08 s, 61 rounds of 100 ms.
    let mut host = host(300);
    host.lose_one_and_recover();
    assert_eq!(host.cwnd(), segments(210));
    let mut after_rounds = |rounds| {
        (0..rounds).for_each(|_| host.round());
        host.cwnd() / segments(1)
    };
    let half_way = after_rounds(30);
    assert!((284..=290).contains(&half_way), "0.4 (3 - 6.08)^3 + 300 = 288.3, not {half_way}");
    let plateau = after_rounds(31);
    assert!((298..=301).contains(&plateau), "{plateau}");
}

/// A timeout forgets the window of the loss: it then grows by a twentieth a round.
#[test]
fn timeout_restarts_slow_start_and_forgets_the_plateau() {
    let mut host = host(300);
    host.time_out();
    assert_eq!((host.cwnd(), host.cc.snapshot().ssthresh), (segments(1), Some(segments(210))));
    while state(&host) == "SlowStart" {
        host.round();
    }
    let before = host.cwnd();
    host.round();
    let growth = (host.cwnd() - before) / segments(1);
    assert_eq!(growth, before / segments(1) / 20);
}

#[test]
fn undo_restores_the_window() {
    let mut host = host(100);
    host.fill();
    host.advance(host.rtt);
    host.lose(1);
    let missing = host.missing();
    host.cc.on_spurious(host.now, &missing);
    assert_eq!(host.cwnd(), segments(100));
}
