//! BBRv2 compared with BBRv3. `imc23` has measurements of Linux's BBRv2.

use crate::common::{case, is_complete, mean};

/// A probe of BBRv2 ends after a round, with a quarter BDP in the queue; one of BBRv3 continues
/// until the rate has been flat for three rounds.
#[test]
fn fills_a_clean_link_with_less_queue_than_bbr3() {
    for (mbit, rtt_ms) in [(10, 40), (50, 30), (100, 100), (1000, 20)] {
        let [v2, v3] =
            ["bbr2", "bbr3"].map(|cc| case(mbit, rtt_ms, 3000).flow(cc, 40, 1)).map(|run| {
                assert_eq!(run.lost_bytes(0, 10.0, 40.0), 0);
                (run.utilisation(10.0, 40.0), run.queue_bdp(0.98, 10.0, 40.0))
            });
        println!(
            "{mbit} Mbit/s {rtt_ms} ms: (utilisation, queue p98 in BDP) {v2:.3?}, v3 {v3:.3?}"
        );
        assert!(v2.0 >= 0.95 && v2.1 <= 0.30, "{v2:.3?}");
        assert!(v3.1 >= 2.0 * v2.1, "{v2:.3?} {v3:.3?}");
    }
}

/// Startup's window is 2.885 BDP; in BBRv3 it is 2 BDP.
#[test]
fn startup_overshoots_more_than_in_bbr3() {
    for milli_bdp in [100, 500, 1000, 4000] {
        let case = case(100, 40, milli_bdp);
        let [v2, v3] = ["bbr2", "bbr3"].map(|cc| {
            let run = case.flow(cc, 10, 1);
            let exit = run.first_in(0, "Drain").expect("Startup ends");
            let queue = run.queue_bdp(1.0, 0.0, exit);
            (queue, run.lost_bytes(0, 0.0, exit + 0.3) / 1448)
        });
        println!("{milli_bdp}: (queue in BDP, packets lost) {v2:.2?}, v3 {v3:.2?}");
        if milli_bdp == 4000 {
            assert!((1.8..=2.0).contains(&v2.0) && v2.1 == 0, "{v2:.2?}");
            assert!((0.9..=1.1).contains(&v3.0) && v3.1 == 0, "{v3:.2?}");
        } else {
            assert!(v2.1 * 10 >= v3.1 * 14 && v2.1 <= 1_000, "{v2:.2?} {v3:.2?}");
        }
    }
}

/// Linux's nsperf `coexist`, as in `sharing.rs`. With a tenth of a BDP, loss ends the probes of
/// both.
#[test]
fn cubic_gets_more_against_bbr2_than_against_bbr3() {
    let seeds = if is_complete() { 5 } else { 3 };
    for milli_bdp in [100, 1000, 4000, 8000] {
        let case = case(50, 30, milli_bdp);
        let [v2, v3] = ["bbr2", "bbr3"].map(|cc| {
            let runs: Vec<_> =
                (1..=seeds).map(|seed| case.flows(&[cc, "cubic"], 120, seed)).collect();
            let total = mean(runs.iter().map(|run| run.utilisation(30.0, 120.0)));
            assert!(total >= 0.93, "{total:.3}");
            mean(runs.iter().map(|run| run.share(0, 30.0, 120.0)))
        });
        println!("share against CUBIC, {milli_bdp} mBDP: {v2:.3}, v3 {v3:.3}");
        if milli_bdp == 100 {
            assert!((v2 - v3).abs() <= 0.05, "{v2:.3} {v3:.3}");
        } else {
            assert!((0.22..=0.42).contains(&v2) && v3 >= 1.4 * v2, "{v2:.3} {v3:.3}");
        }
    }
}

/// Both have the same loss threshold of 2 %: v2's shorter probes save losses but lose growth.
#[test]
fn random_loss_costs_the_same_as_in_bbr3() {
    let seeds = if is_complete() { 8 } else { 4 };
    for ((mbit, rtt_ms), least) in [((100, 100), 0.78), ((100, 20), 0.73), ((10, 40), 0.65)] {
        let [light, heavy] = ["1%", "5%"].map(|loss| {
            let case = case(mbit, rtt_ms, 1000).loss(loss);
            let [v2, v3] = ["bbr2", "bbr3"].map(|cc| {
                mean((1..=seeds).map(|seed| case.flow(cc, 40, seed).utilisation(10.0, 40.0)))
            });
            println!("{mbit} Mbit/s {rtt_ms} ms, loss {loss}: {v2:.3}, v3 {v3:.3}");
            assert!((v2 - v3).abs() <= 0.06, "{loss}: {v2:.3} {v3:.3}");
            v2
        });
        assert!(light >= least && heavy <= 0.3 * light, "{light:.3} {heavy:.3}");
    }
}
