//! Flows that share a bottleneck.
mod common;

use common::{case, mean};

/// Linux's nsperf `coexist`: one BBRv3 and one CUBIC flow, 50 Mbit/s, 30 ms, 30 s to 180 s.
#[test]
fn bbr3_and_cubic_coexist() {
    for milli_bdp in [100, 500, 1000, 2000, 4000, 8000, 16_000] {
        let case = case(50, 30, milli_bdp);
        let runs: Vec<_> = (1..=5).map(|seed| case.flows(&["bbr3", "cubic"], 180, seed)).collect();
        let shares: Vec<f64> = runs.iter().map(|run| run.share(0, 30.0, 180.0)).collect();
        let share = mean(shares.iter().copied());
        let total = mean(runs.iter().map(|run| run.utilisation(30.0, 180.0)));
        println!("{} BDP: bbr3 {share:.2} {shares:.2?}, total {total:.3}", milli_bdp as f64 / 1e3);
        let least = if milli_bdp <= 4000 { 0.40 } else { 0.20 };
        assert!((least..=0.70).contains(&share), "{milli_bdp}: {share:.2}");
        assert!(shares.iter().all(|share| (0.15..=0.75).contains(share)), "{shares:.2?}");
        // A tenth of a BDP is 12 packets, which CUBIC's unpaced bursts overflow early.
        let least = if milli_bdp == 100 { 0.93 } else { 0.95 };
        assert!(total >= least, "{milli_bdp}: {total:.3}");
    }
}

/// Two flows that start together. Over 50 s their shares still differ by chance: one probe more or
/// less is a tenth of the time.
#[test]
fn two_bbr3_flows_share_fairly() {
    for milli_bdp in [500, 1000, 2000, 4000] {
        let case = case(100, 40, milli_bdp);
        let runs = (1..=8).map(|seed| case.flows(&["bbr3", "bbr3"], 60, seed));
        let indices: Vec<f64> = runs.map(|run| run.jain(10.0, 60.0)).collect();
        let mean = mean(indices.iter().copied());
        println!("{} BDP: Jain {mean:.3} {indices:.3?}", milli_bdp as f64 / 1e3);
        assert!(mean >= 0.90, "{milli_bdp}: {mean:.3}");
        assert!(indices.iter().all(|jain| *jain >= 0.80), "{milli_bdp}: {indices:.3?}");
    }
}
