//! CUBIC's response function, RFC 9438 §5.1: the mean window under deterministic loss.
mod common;

use common::{case, mean};

/// Mean congestion window in segments, with every n-th packet lost, on a link that never queues.
fn mean_window(rtt_ms: u64, n: u64, secs: u64) -> f64 {
    let mut case = case(40_000, rtt_ms, 2000).every_nth_lost(n);
    case.sample_every = uncork_units::TimeDelta::from_millis(rtt_ms);
    let run = case.flow("cubic", secs, 1);
    let from = secs as f64 * 0.2;
    let window = mean(run.between(0, from, secs as f64).map(|point| point.cwnd_bytes as f64));
    let window = window / 1448.0;
    println!("RTT {rtt_ms} ms, p = 1/{n}: {window:.1} segments");
    window
}

//= rfc9438 5.1-1 test
#[test]
fn follows_the_rfc_table() {
    let table = [
        (100, 1_000, 38.0, 300),
        (100, 10_000, 187.0, 1000),
        (100, 100_000, 1054.0, 3000),
        (10, 1_000, 38.0, 60),
        (10, 10_000, 120.0, 200),
        (10, 100_000, 379.0, 600),
    ];
    for (rtt_ms, n, rfc, secs) in table {
        let ours = mean_window(rtt_ms, n, secs);
        assert!((ours / rfc - 1.0).abs() <= 0.10, "RTT {rtt_ms} ms, 1/{n}: {ours:.1}, RFC {rfc}");
    }
}
