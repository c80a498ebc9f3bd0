//! Prague behind queues for L4S, and behind classic ones.

use uncork_path::{Ecn, RateSpec, Step};
use uncork_sim::FlowSpec;
use uncork_units::{Rate, TimeDelta};

use crate::common::{Run, is_complete, mean};
use crate::elements::scene::{at, behind, flows, go, waited};

const SECS: u64 = 60;

/// Flows of these controllers and ECN fields, at `mbit` Mbit/s and `rtt_ms`.
fn run(queue: &str, (mbit, rtt_ms): (u64, u64), ccs: &[(&str, Ecn)], seed: u64) -> Run {
    let all = ccs.iter().zip(0..).map(|((cc, ecn), index)| {
        let mut flow = flows(&[cc], *ecn, SECS).remove(0);
        flow.start += TimeDelta::from_millis(100).times(index);
        flow
    });
    let run = behind(queue, mbit, rtt_ms).run(all.collect(), seed, at(1000 * SECS));
    for (flow, index) in run.result.flows.iter().zip(0..) {
        let (p50, p95) = waited(flow);
        println!(
            "{queue} {mbit} Mbit/s {rtt_ms} ms: {} has {:.3}, waited p50 {p50:.2}, p95 {p95:.2} ms, {} of {} packets \
             marked",
            flow.cc,
            run.share(index, 10.0, SECS as f64),
            flow.packets_marked,
            flow.packets_sent,
        );
    }
    run
}

const PRAGUE: (&str, Ecn) = ("prague", Ecn::Ect1);

#[test]
fn one_flow_fills_the_link_and_waits_a_millisecond() {
    for (mbit, rtt_ms) in [(20, 10), (100, 10), (100, 50), (500, 20)] {
        let run = run("dualpi2", (mbit, rtt_ms), &[PRAGUE], 1);
        let (_, p95) = waited(&run.result.flows[0]);
        assert!(p95 <= 1.5, "{mbit} Mbit/s, {rtt_ms} ms: {p95} ms");
        let used = run.utilisation(10.0, SECS as f64);
        assert!(used >= 0.97, "{mbit} Mbit/s, {rtt_ms} ms: {used}");
    }
}

/// DualPI2 couples its queues so that one flow of each kind has about as much (RFC 9332 §2.1).
#[test]
fn share_next_to_cubic_is_fair_behind_a_dual_queue() {
    for (mbit, rtt_ms) in [(40, 20), (100, 10)] {
        let run = run("dualpi2", (mbit, rtt_ms), &[PRAGUE, ("cubic", Ecn::NotEct)], 1);
        let share = run.share(0, 10.0, SECS as f64);
        assert!((0.4..=0.65).contains(&share), "{mbit} Mbit/s, {rtt_ms} ms: {share}");
    }
}

/// Flows with less than 25 ms share within a fifth with any other. Among longer ones those with the shorter RTT have up
/// to twice as much: where all packets of a round trip are marked or none, the rate also depends on how often alpha is
/// updated, and that is at most once per round trip.
#[test]
//= rfc9331 4.3-7 test
fn shares_hardly_depend_on_the_rtt() {
    for (short, long, range) in
        [(5, 25, 0.42..=0.58), (5, 100, 0.42..=0.58), (10, 100, 0.42..=0.6), (25, 100, 0.5..=0.72)]
    {
        let mut all = flows(&["prague"; 2], Ecn::Ect1, SECS);
        let set = |flow: &mut FlowSpec, ms| flow.rtt = Some(TimeDelta::from_millis(ms));
        set(&mut all[0], short);
        set(&mut all[1], long);
        let run = go(&behind("dualpi2", 100, 5), all, SECS);
        let share = run.share(0, 15.0, SECS as f64);
        println!("{short} next to {long} ms: {share:.3}");
        assert!(range.contains(&share), "{short} next to {long} ms: {share}");
    }
}

/// In one queue for all, which marks at 5 or 15 ms, CUBIC keeps two fifths. If Prague answered in proportion, it would
/// keep a twentieth.
#[test]
//= rfc9331 4.3-6 test
fn cubic_keeps_its_share_of_one_classic_queue() {
    let seeds = if is_complete() { 4 } else { 2 };
    for queue in ["codel:ecn", "pie:ecn"] {
        for (mbit, rtt_ms) in [(20, 20), (100, 10), (100, 50)] {
            for cubic in [Ecn::Ect0, Ecn::NotEct] {
                let share = |seed| {
                    run(queue, (mbit, rtt_ms), &[PRAGUE, ("cubic", cubic)], seed)
                        .share(1, 20.0, 60.0)
                };
                let mean = mean((1..=seeds).map(share));
                println!("{queue} {mbit} Mbit/s {rtt_ms} ms: CUBIC with {cubic:?} keeps {mean:.3}");
                assert!(mean >= 0.4, "{queue} {mbit} Mbit/s {rtt_ms} ms {cubic:?}: {mean}");
            }
        }
    }
}

/// Marks at a millisecond remain those of L4S, also when the link loses four fifths of its rate.
#[test]
//= rfc9331 4.3-5 test
fn flow_stays_in_the_queue_for_l4s() {
    let mut case = behind("dualpi2", 100, 20);
    let steps = vec![Step { at: at(15_000), value: Rate::from_mbit(20) }];
    case.path.link.rate = RateSpec::Steps { first: Rate::from_mbit(100), steps: steps.into() };
    let run = go(&case, flows(&["prague"], Ecn::Ect1, SECS), SECS);
    // In the other queue its packets would wait for 15 ms.
    let (p50, p95) = waited(&run.result.flows[0]);
    println!("after a fall of the rate: waited p50 {p50:.2}, p95 {p95:.2} ms");
    assert!(p50 <= 1.5, "{p50} ms");
}
