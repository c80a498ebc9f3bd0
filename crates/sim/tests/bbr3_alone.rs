//! BBRv3 alone on a FIFO: draft-ietf-ccwg-bbr-06 §3.1 and its example test cases.
mod common;

use common::{case, payload_rate};

#[test]
fn fills_a_clean_link_without_loss() {
    for (mbit, rtt_ms) in [(1, 40), (1, 300), (10, 10), (10, 100), (100, 10), (100, 40), (100, 300)]
    {
        let run = case(mbit, rtt_ms, 2000).flow("bbr3", 60, 1);
        let utilisation = run.utilisation(10.0, 60.0);
        println!("{mbit} Mbit/s {rtt_ms} ms: {utilisation:.3}");
        assert!(utilisation >= 0.95, "{mbit} Mbit/s {rtt_ms} ms: {utilisation:.3}");
        assert_eq!(run.lost_bytes(0, 10.0, 60.0), 0, "{mbit} Mbit/s {rtt_ms} ms");
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

#[test]
fn startup_leaves_a_shallow_buffer_on_loss() {
    let run = case(100, 40, 100).flow("bbr3", 10, 1);
    let exit = run.first_in(0, "Drain").expect("Startup ends");
    let lost = run.lost_bytes(0, 0.0, exit + 0.2) / 1448;
    println!("0.1 BDP: Drain at {exit:.2} s, {lost} packets lost");
    assert!(lost <= 100, "{lost} packets");
}

#[test]
fn drain_empties_the_queue_of_startup() {
    for (mbit, rtt_ms) in [(10, 40), (100, 40), (100, 100)] {
        let run = case(mbit, rtt_ms, 2000).flow("bbr3", 10, 1);
        let rtt = rtt_ms as f64 / 1e3;
        let entry = run.first_in(0, "Drain").expect("Startup ends");
        let exit = run.first_in(0, "ProbeBW_DOWN").expect("Drain ends");
        let bdp = run.path.bdp_bytes() as f64;
        let at_entry = run.between(0, entry, 10.0).next().expect("sampled");
        let at_exit = run.between(0, exit, 10.0).next().expect("sampled");
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
