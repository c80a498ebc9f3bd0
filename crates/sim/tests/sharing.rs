//! Flows that share a bottleneck.
mod common;

use common::{case, mean};

/// Linux's nsperf `coexist`: one BBRv3 and one CUBIC flow, 50 Mbit/s, 30 ms, 30 s to 180 s.
#[test]
fn bbr3_and_cubic_coexist() {
    let seeds = 1..=5;
    let buffers = [(100, 0.40), (500, 0.40), (1000, 0.40), (2000, 0.40), (4000, 0.40)];
    for (milli_bdp, least) in buffers.into_iter().chain([(8000, 0.20), (16000, 0.20)]) {
        let case = case(50, 30, milli_bdp);
        let runs: Vec<_> =
            seeds.clone().map(|seed| case.flows(&["bbr3", "cubic"], 180, seed)).collect();
        let shares: Vec<f64> = runs.iter().map(|run| run.share(0, 30.0, 180.0)).collect();
        let total = mean(runs.iter().map(|run| run.utilisation(30.0, 180.0)));
        let share = mean(shares.iter().copied());
        println!("{} BDP: bbr3 {share:.2} {shares:.2?}, total {total:.3}", milli_bdp as f64 / 1e3);
        let most = if milli_bdp <= 4000 { 0.70 } else { 0.75 };
        assert!((least..=most).contains(&share), "{milli_bdp}: {share:.2}");
        assert!(shares.iter().all(|share| (0.15..=0.75).contains(share)), "{shares:.2?}");
        assert!(total >= 0.95, "{milli_bdp}: {total:.3}");
    }
}

#[test]
fn two_bbr3_flows_share_fairly() {
    for milli_bdp in [500, 1000, 2000, 4000] {
        let case = case(100, 40, milli_bdp);
        for seed in 1..=3 {
            let jain = case.flows(&["bbr3", "bbr3"], 60, seed).jain(10.0, 60.0);
            println!("{} BDP, seed {seed}: Jain {jain:.3}", milli_bdp as f64 / 1e3);
            assert!(jain >= 0.90, "{milli_bdp}, seed {seed}: {jain:.3}");
        }
    }
}
