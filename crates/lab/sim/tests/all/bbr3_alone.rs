//! BBRv3 alone on a FIFO: draft-ietf-ccwg-bbr-06 §3.1 and its example test cases.

use crate::common::{case, payload_rate, seconds};

/// The grid of RTTs and rates of draft-ietf-ccwg-bbr-06's appendix, as far as a buffer of 2 BDP
/// holds the few packets required by the minimum window and bursts. ProbeRTT lasts a round trip if
/// that is longer than 200 ms: with half a window every 5 s, it costs long paths 13 % per second of
/// RTT.
#[test]
fn fills_a_clean_link_without_loss() {
    let rtts = [10, 40, 100, 300, 600, 1000];
    let grid = [1, 10, 100].into_iter().flat_map(|mbit| rtts.map(|rtt_ms| (mbit, rtt_ms)));
    for (mbit, rtt_ms) in grid {
        let (warm_up, end) = (10.0 + rtt_ms as f64 / 50.0, 90);
        let case = case(mbit, rtt_ms, 2000);
        let run = case.flow("bbr3", end, 1);
        let utilisation = run.utilisation(warm_up, end as f64);
        let lost = run.lost_bytes(0, warm_up, end as f64) / 1448;
        println!("{mbit} Mbit/s {rtt_ms} ms: {utilisation:.3}, {lost} packets lost");
        // Below a BDP of ten packets, the buffer overflows with the minimum window of four packets
        // and bursts of two.
        let holds_the_floor = case.path.bdp_bytes() >= 10 * 1500;
        assert!(lost == 0 || !holds_the_floor, "{mbit} Mbit/s {rtt_ms} ms: {lost} packets lost");
        let least = f64::min(0.95, 0.97 - 0.13 * rtt_ms as f64 / 1e3);
        let least = if holds_the_floor { least } else { 0.90 };
        assert!(utilisation >= least, "{mbit} Mbit/s {rtt_ms} ms: {utilisation:.3}");
    }
}

#[test]
fn fills_a_clean_gigabit() {
    for rtt_ms in [1, 20, 100] {
        let run = case(1000, rtt_ms, 2000).flow("bbr3", 20, 1);
        let utilisation = run.utilisation(5.0, 20.0);
        println!("1 Gbit/s {rtt_ms} ms: {utilisation:.3}");
        assert!(utilisation >= 0.95, "{rtt_ms} ms: {utilisation:.3}");
        assert_eq!(run.lost_bytes(0, 5.0, 20.0), 0, "{rtt_ms} ms");
    }
}

#[test]
fn startup_finds_the_bandwidth_and_leaves_without_loss() {
    for (mbit, rtt_ms) in [(10, 40), (100, 40), (100, 100), (1000, 20)] {
        let run = case(mbit, rtt_ms, 2000).flow("bbr3", 10, 1);
        let exit = run.first_in(0, "Drain").expect("Startup ends");
        let at_exit = run.between(0, exit, 10.0).next().expect("a point at the exit");
        let max_bw = at_exit.max_bw_bps.expect("measured") as f64 / payload_rate(mbit);
        println!("{mbit} Mbit/s {rtt_ms} ms: Drain at {exit:.2} s, max_bw {max_bw:.3} of the link");
        assert!((0.98..=1.02).contains(&max_bw), "{mbit} Mbit/s {rtt_ms} ms: {max_bw:.3}");
        assert_eq!(at_exit.lost_bytes, 0);
    }
}

/// A 0.1-BDP buffer: two round trips with a window of 2 BDP over a path that holds 1.1 BDP (one
/// until the first loss is known, one in recovery) lose 1.8 BDP, or 600 packets. Without the rule
/// that a round's losses count together (DEVIATIONS.md (a), (g)) Startup lasts longer.
#[test]
fn startup_leaves_a_shallow_buffer_on_loss() {
    let lost = |cc| {
        let run = case(100, 40, 100).flow(cc, 10, 1);
        let exit = run.first_in(0, "Drain").expect("Startup ends");
        let at_exit = run.between(0, exit, 10.0).next().expect("a point at the exit");
        let lost = run.lost_bytes(0, 0.0, exit + 0.2) / 1448;
        println!("{cc}, 0.1 BDP: Drain at {exit:.2} s, {lost} packets lost");
        assert!(at_exit.max_bw_bps.expect("measured") as f64 >= 0.98 * payload_rate(100));
        lost
    };
    let (ours, draft) = (lost("bbr3"), lost("bbr3:strict_draft"));
    assert!(ours <= 650, "{ours} packets");
    assert!(ours * 2 <= draft, "{ours} packets, {draft} with the literal draft");
}

#[test]
fn drain_empties_the_queue_of_startup() {
    for (mbit, rtt_ms) in [(10, 40), (100, 40), (100, 100)] {
        let run = case(mbit, rtt_ms, 2000).flow("bbr3", 10, 1);
        let rtt = rtt_ms as f64 / 1e3;
        let entry = run.first_in(0, "Drain").expect("Startup ends");
        let bdp = run.path.bdp_bytes() as f64;
        let at_entry = run.between(0, entry, 10.0).next().expect("sampled");
        let at_exit = run.between(0, entry, 10.0).find(|point| point.state.starts_with("ProbeBW"));
        let at_exit = at_exit.expect("Drain ends");
        let exit = seconds(at_exit);
        let queue = at_entry.queue_bytes as f64 / bdp;
        let inflight = at_exit.inflight_bytes as f64 * 1500.0 / 1448.0 / bdp;
        println!(
            "{mbit} Mbit/s {rtt_ms} ms: queue {queue:.2} BDP, Drain {:.1} RTT, then {inflight:.2} BDP",
            (exit - entry) / rtt
        );
        assert!(queue >= 0.90, "{queue:.2} BDP in the queue when Drain begins");
        assert!(inflight <= 1.05, "{inflight:.2} BDP in flight when Drain ends");
        assert!(exit - entry <= 2.0 * 4.0 * rtt, "Drain takes {:.2} s", exit - entry);
    }
}

#[test]
fn keeps_the_queue_short() {
    let rtt_ms = 30;
    let bbr3 = case(50, rtt_ms, 2000).flow("bbr3", 60, 1);
    let cubic = case(50, rtt_ms, 2000).flow("cubic", 60, 1);
    let (p50, p95) = (bbr3.queue_bdp(0.5, 10.0, 60.0), bbr3.queue_bdp(0.95, 10.0, 60.0));
    let cubic_p50 = cubic.queue_bdp(0.5, 10.0, 60.0);
    println!("queue: bbr3 p50 {p50:.3} p95 {p95:.2} BDP, cubic p50 {cubic_p50:.2} BDP");
    assert!(p50 <= 0.05, "p50 {p50:.3} BDP");
    assert!(p95 <= 0.75, "p95 {p95:.2} BDP");
    assert!(cubic_p50 > 1.0, "cubic p50 {cubic_p50:.2} BDP");
}
