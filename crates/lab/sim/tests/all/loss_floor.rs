//! The option `bbr3:loss_floor` compared with BBRv1 and BBRv3: its gain under random loss, and no
//! harm elsewhere.

use crate::common::{Case, Run, case, is_complete, mean};

/// Mean over `seeds` of the link utilization from 10 s to `secs`.
fn used(case: &Case, cc: &str, secs: u64, seeds: u64) -> f64 {
    mean((1..=seeds).map(|seed| case.flow(cc, secs, seed).utilisation(10.0, secs as f64)))
}

/// Percent of all flows' payload that was declared lost between two times.
fn percent_lost(run: &Run, from: f64, to: f64) -> f64 {
    let (lost, delivered) = run.lost_and_delivered(from, to);
    100.0 * lost / (delivered + lost)
}

#[test]
fn up_to_three_percent_random_loss_it_matches_bbr1() {
    println!("share of the link, 1-BDP buffer, after 10 s: bbr1, bbr3, bbr3:loss_floor");
    for (mbit, rtt_ms, secs, seeds) in
        [(10, 40, 60, 4), (50, 30, 40, 2), (100, 100, 40, 2), (1000, 20, 20, 1)]
    {
        // A run at a gigabit takes longer than all others of its loss.
        let losses = if mbit == 1000 && !is_complete() { 2.. } else { 0.. };
        for loss in &["0.1%", "1%", "3%"][losses] {
            let case = case(mbit, rtt_ms, 1000).loss(loss);
            let [bbr1, bbr3, floor] =
                ["bbr1", "bbr3", "bbr3:loss_floor"].map(|cc| used(&case, cc, secs, seeds));
            println!("{mbit:4} Mbit/s {rtt_ms:3} ms {loss:>4}: {bbr1:.3} {bbr3:.3} {floor:.3}");
            assert!(floor >= 0.97 * bbr1, "{mbit} Mbit/s {loss}: {floor:.3}, bbr1 {bbr1:.3}");
            assert!(floor > bbr3, "{mbit} Mbit/s {loss}: {floor:.3}, bbr3 {bbr3:.3}");
        }
    }
}

/// Above its maximum the floor has no effect: the protection against congestion collapse remains.
#[test]
fn it_slows_down_under_heavy_loss_and_never_stalls() {
    for loss in ["15%", "30%"] {
        let run = case(100, 20, 1000).loss(loss).flow("bbr3:loss_floor", 60, 1);
        let share = run.utilisation(10.0, 60.0);
        println!("bbr3:loss_floor at {loss}: {share:.4}");
        assert!(share < 0.05, "{loss}: {share:.3}");
        assert!(run.goodput(0, 50.0, 60.0) > 0.0);
    }
}

#[test]
fn in_shallow_buffers_it_loses_as_little_as_bbr3() {
    println!("share of the link, percent lost: bbr1, bbr3, bbr3:loss_floor");
    let cases = [
        (1000, 100, 20, 1),
        (1000, 100, 20, 10),
        (100, 40, 20, 4),
        (100, 40, 100, 10),
        (100, 40, 500, 10),
        (10, 40, 250, 6),
    ];
    for (mbit, rtt_ms, milli_bdp, flows) in cases {
        let case = case(mbit, rtt_ms, milli_bdp);
        let seeds = if mbit == 1000 && !is_complete() { 1 } else { 2 };
        let [bbr1, bbr3, floor] = ["bbr1", "bbr3", "bbr3:loss_floor"].map(|cc| {
            let runs: Vec<Run> =
                (1..=seeds).map(|seed| case.flows(&vec![cc; flows], 30, seed)).collect();
            let used = mean(runs.iter().map(|run| run.utilisation(10.0, 30.0)));
            (used, mean(runs.iter().map(|run| percent_lost(run, 10.0, 30.0))))
        });
        println!(
            "{mbit:4} Mbit/s {rtt_ms:3} ms, buffer {milli_bdp} mBDP, {flows:2} flows: \
             {bbr1:.3?} {bbr3:.3?} {floor:.3?}"
        );
        assert!(floor.0 >= bbr3.0 - 0.02, "{mbit} Mbit/s {milli_bdp}: {floor:.3?}");
        assert!(floor.1 <= 1.5 * bbr3.1 + 0.1, "{mbit} Mbit/s {milli_bdp}: {floor:.3?}");
        assert!(floor.1 <= 0.5 * bbr1.1, "{mbit} Mbit/s {milli_bdp}: {floor:.3?}");
    }
}

#[test]
fn share_against_cubic_is_close_to_bbr3s() {
    for milli_bdp in [100, 500, 1000, 4000, 16_000] {
        let case = case(50, 30, milli_bdp);
        let [bbr3, floor] = ["bbr3", "bbr3:loss_floor"].map(|cc| {
            mean((1..=3).map(|seed| case.flows(&[cc, "cubic"], 120, seed).share(0, 30.0, 120.0)))
        });
        println!("{milli_bdp} mBDP: bbr3 {bbr3:.2}, with the floor {floor:.2}");
        assert!((floor - bbr3).abs() <= 0.05, "{milli_bdp}: {floor:.2}, bbr3 {bbr3:.2}");
    }
}
