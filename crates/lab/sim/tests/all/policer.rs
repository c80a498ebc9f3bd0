//! Flows behind a token-bucket policer.

use crate::common::{Run, case, is_complete, mean};

/// With a policer rate of 1/20 of the link, all losses are the policer's; everything it passes
/// arrives.
#[test]
fn policer_drops_are_counted_separately() {
    let run = case(100, 40, 2000).policed("5mbit:50kB").flow("cubic", 20, 1);
    let record = &run.result.flows[0];
    assert_eq!((record.lab().packets_dropped_queue, record.lab().packets_dropped_random), (0, 0));
    assert!(record.lab().packets_dropped_policer > 0);
    let arrived = record.packets_sent - record.lab().packets_dropped_policer;
    let admitted = 50_000 + 625_000 * 20;
    assert!(arrived * 1500 <= admitted, "{arrived} packets");
}

/// Mean utilization of the policed 5 Mbit/s, and mean loss rate, once the bucket is empty.
fn behind(policer: &str, rtt_ms: u64, cc: &str) -> (f64, f64) {
    let (from, to) = (20.0, 120.0);
    let case = case(100, rtt_ms, 1000).policed(policer);
    let runs: Vec<Run> = (1..=3).map(|seed| case.flow(cc, to as u64, seed)).collect();
    let used = mean(runs.iter().map(|run| run.goodput(0, from, to) * 1500.0 / 1448.0 / 5e6));
    let lost = mean(runs.iter().map(|run| {
        let (lost, delivered) = run.lost_and_delivered(from, to);
        lost / (lost + delivered)
    }));
    println!("{cc:6} {rtt_ms} ms, {policer}: uses {used:.3}, loses {:.1} %", 100.0 * lost);
    (used, lost)
}

/// 5 Mbit/s on a link of 100 Mbit/s, with bursts from two BDP at the policed rate to 1.6 s of it.
/// In google/quiche's `SenderPoliced` test the bucket is 100 kB and 30 % of loss is allowed.
#[test]
fn bbr_copes_with_a_policer() {
    let rtts: &[u64] = if is_complete() { &[10, 40, 100, 200] } else { &[40, 100] };
    for rtt_ms in rtts {
        for policer in ["5mbit:50kB", "5mbit:100kB", "5mbit:250kB", "5mbit:1MB"] {
            for cc in ["bbr1", "bbr3"] {
                let (used, lost) = behind(policer, *rtt_ms, cc);
                assert!(lost <= 0.10 && used >= 0.90, "{cc}, {rtt_ms} ms, {policer}");
            }
            let (used, lost) = behind(policer, *rtt_ms, "cubic");
            assert!(lost <= 0.05 && used >= 0.75, "cubic, {rtt_ms} ms, {policer}");
        }
    }
}
