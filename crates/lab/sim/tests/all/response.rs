//! The response function: the mean window of a loss-based algorithm when one packet in n is lost,
//! on a path without a queue (RFC 9438 §5.1 for CUBIC, RFC 5681's square-root law for Reno).

use crate::common::{Case, case, is_complete, mean};
use uncork_units::TimeDelta;

/// RTT in milliseconds, n, and RFC 9438's mean window for a loss in n packets (tables 1 and 2).
const TABLE: [(u64, u64, f64); 8] = [
    (100, 100, 12.0),
    (100, 1_000, 38.0),
    (100, 10_000, 187.0),
    (100, 100_000, 1054.0),
    (10, 100, 12.0),
    (10, 1_000, 38.0),
    (10, 10_000, 120.0),
    (10, 100_000, 379.0),
];

fn path(rtt_ms: u64) -> Case {
    let mut case = case(40_000, rtt_ms, 2000);
    case.sample_every = TimeDelta::from_millis(rtt_ms);
    case
}

/// Mean cwnd in segments over the last four fifths of the time that `losses` losses take at a mean
/// window of `window`.
fn mean_window(case: &Case, cc: &str, losses: u64, (n, window): (u64, f64), seed: u64) -> f64 {
    let rtt = case.path.rtt.as_secs_f64();
    let secs = ((losses * n) as f64 / window * rtt).ceil().max(20.0);
    let run = case.flow(cc, secs as u64, seed);
    let windows = run.between(0, secs * 0.2, secs).map(|point| point.cwnd_bytes as f64);
    mean(windows) / 1448.0
}

fn assert_deterministic(cc: &str, (rtt_ms, n, expected): (u64, u64, f64)) {
    let case = path(rtt_ms).every_nth_lost(n);
    let losses = if n == 100_000 && !is_complete() { 40 } else { 150 };
    let window = mean_window(&case, cc, losses, (n, expected), 1);
    println!("{cc} RTT {rtt_ms} ms, every {n}th: {window:.1} segments, expected {expected:.1}");
    let tolerance = if n == 100 { 0.15 } else { 0.10 };
    assert!((window / expected - 1.0).abs() <= tolerance, "{cc} {rtt_ms} ms, 1/{n}: {window:.1}");
}

#[test]
//= rfc9438 4.3-1 test
//= rfc9438 5.1-1 test
fn cubic_follows_the_rfc_when_every_nth_packet_is_lost() {
    for row in TABLE {
        assert_deterministic("cubic", row);
    }
}

#[test]
fn reno_follows_the_square_root_law_at_any_rtt() {
    for (rtt_ms, n) in [(100, 100), (100, 1_000), (10, 10_000)] {
        assert_deterministic("reno", (rtt_ms, n, (1.5 * n as f64).sqrt()));
    }
}

/// The RFC's table is for evenly spaced losses. Random losses leave gaps in which the window grows
/// with the cube of time, which more than compensates for close losses. Only the full version
/// covers a loss rate of one in 100 000.
#[test]
fn cubic_gains_from_random_spacing() {
    let (losses, seeds) = if is_complete() { (200, 8) } else { (150, 4) };
    for (rtt_ms, n, expected) in TABLE {
        if n == 100_000 && !is_complete() {
            continue;
        }
        let case = path(rtt_ms).loss(&format!("{}%", 100.0 / n as f64));
        let windows =
            (1..=seeds).map(|seed| mean_window(&case, "cubic", losses, (n, expected), seed));
        let window = mean(windows);
        let gain = window / expected - 1.0;
        println!("cubic RTT {rtt_ms} ms, p = 1/{n}: {window:.1} segments, {:+.0} %", 100.0 * gain);
        assert!((0.0..=0.25).contains(&gain), "{rtt_ms} ms, 1/{n}: {window:.1}");
    }
}
