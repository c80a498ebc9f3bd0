//! ECN on paths with middleboxes, and over connections with part of AccECN.

use uncork_path::{Ecn, LossPosition};
use uncork_sim::{AccEcn, AckPolicy, FlowSpec, MSS_BYTES};
use uncork_units::TimeDelta;

use crate::common::{Case, Run};
use crate::elements::scene::{behind, flows, go, waited};

const SECS: u64 = 40;

/// `case` with a middlebox.
fn with(mut case: Case, change: &str, position: LossPosition) -> Case {
    case.path.ecn_change = Some(change.parse().expect("a change"));
    case.path.ecn_position = position;
    case
}

/// A flow of `cc`, and a CUBIC flow without ECN if `shares`.
fn run(
    name: &str,
    case: &Case,
    (cc, ecn): (&str, Ecn),
    accecn: Option<AccEcn>,
    shares: bool,
) -> Run {
    let mut all = flows(&[cc], ecn, SECS);
    all[0].accecn = accecn;
    if shares {
        all.extend(flows(&["cubic"], Ecn::NotEct, SECS));
    }
    print(name, go(case, all, SECS))
}

fn print(name: &str, run: Run) -> Run {
    for (flow, index) in run.result.flows.iter().zip(0..) {
        let (p50, p95) = waited(flow);
        println!(
            "{name}: {} has {:.3}, {:.1} Mbit/s, waited p50 {p50:.2}, p95 {p95:.2} ms, {} of {} marked, {} dropped",
            flow.cc,
            run.share(index, 10.0, SECS as f64),
            run.goodput(index, 10.0, SECS as f64) / 1e6,
            flow.packets_marked,
            flow.packets_sent,
            flow.lab().packets_dropped_queue,
        );
    }
    run
}

/// What became of a flow: bytes delivered; packets sent, marked and dropped.
fn fate(run: &Run, flow: usize) -> [u64; 4] {
    let flow = &run.result.flows[flow];
    let dropped = flow.lab().packets_dropped_queue;
    [flow.bytes_delivered, flow.packets_sent, flow.packets_marked, dropped]
}

const PRAGUE: (&str, Ecn) = ("prague", Ecn::Ect1);

/// Without marks it is CUBIC with pacing, packet by packet: as a flow that does not send ECT, with the same room for SACK
/// blocks.
#[test]
fn bleached_flow_is_the_flow_without_ecn() {
    for queue in ["droptail", "codel:ecn", "dualpi2"] {
        let path = behind(queue, 40, 20).packets(80);
        let plain = run(queue, &path, ("prague", Ecn::NotEct), Some(AccEcn::Option), true);
        let bleached = with(path, "bleach", LossPosition::Before);
        let bleached = run(queue, &bleached, PRAGUE, None, true);
        assert_eq!(fate(&bleached, 0), fate(&plain, 0), "{queue}");
        assert_eq!(fate(&bleached, 1), fate(&plain, 1), "{queue}");
        let [_, _, marked, dropped] = fate(&bleached, 0);
        assert!(marked == 0 && dropped > 0, "{queue}: {marked} marked, {dropped} dropped");
    }
}

/// Its client counts bytes with ECT(0), so it is CUBIC with ECT(0) from the first acknowledgement on, and shares the
/// classic queue. Where the option is missing, the marks of that queue show it, which takes longer.
#[test]
fn flow_with_ect1_changed_to_ect0_is_a_classic_one() {
    for accecn in [AccEcn::Option, AccEcn::Counter] {
        let case = with(behind("dualpi2", 40, 20), "ect1-to-ect0", LossPosition::Before);
        let run = run(&format!("{accecn:?}"), &case, PRAGUE, Some(accecn), true);
        let share = run.share(1, 10.0, SECS as f64);
        let (p50, _) = waited(&run.result.flows[0]);
        assert!((0.35..=0.65).contains(&share), "{accecn:?}: CUBIC keeps {share:.3}");
        assert!((5.0..=25.0).contains(&p50), "{accecn:?}: {p50:.2} ms in the classic queue");
    }
}

/// A hundredth of the packets is marked without congestion, at random. Prague takes half of that share from its window W with
/// the first mark that comes a virtual round trip after the reduction before, so on average every 1 + 1 / (p W) of them, and
/// gains a segment in each. Hence p W = 1 + sqrt(3), up to a quarter above the 2 of a mark in each round trip. For CUBIC a
/// mark is a loss. Above 25 ms Prague has more than that (KNOWN_WEAKNESSES.md).
#[test]
fn rate_under_marks_of_a_middlebox_is_that_of_the_closed_form() {
    for rtt_ms in [10, 20, 40] {
        let case = with(behind("droptail", 500, rtt_ms), "ce:1%", LossPosition::Before);
        let rate = |flow, name: &str| {
            run(name, &case, flow, None, false).goodput(0, 10.0, SECS as f64) / 1e6
        };
        let (prague, cubic) = (rate(PRAGUE, "ce:1%"), rate(("cubic", Ecn::Ect0), "ce:1%"));
        let window_bits = (1.0 + 3_f64.sqrt()) / 0.01 * f64::from(8 * MSS_BYTES);
        let expected = window_bits / (rtt_ms.max(25) as f64 / 1e3) / 1e6;
        println!("{rtt_ms} ms: {prague:.1} Mbit/s, expected {expected:.1}; CUBIC has {cubic:.1}");
        let within = if rtt_ms <= 25 { 0.1 } else { 0.4 };
        assert!((prague / expected - 1.0).abs() <= within, "{prague:.1} of {expected:.1} Mbit/s");
        assert!(cubic * 3.0 < prague, "CUBIC has {cubic:.1} Mbit/s");
    }
}

/// Marks that are erased get no answer: the low-latency queue overflows into drops (RFC 9332 §4.2.3), which do get one.
#[test]
fn erased_marks_leave_losses() {
    let case = with(behind("dualpi2", 40, 20), "ce-to-ect1", LossPosition::After);
    let run = run("ce-to-ect1", &case, PRAGUE, None, false);
    let [_, _, marked, dropped] = fate(&run, 0);
    let (p50, _) = waited(&run.result.flows[0]);
    let used = run.utilisation(10.0, SECS as f64);
    assert!(marked == 0 && dropped > 0, "{marked} marked, {dropped} dropped");
    assert!(used >= 0.85 && p50 > 2.0, "used {used:.3}, waited {p50:.2} ms");
}

/// A client without AccECN gets ECT(0), and its server's Prague is CUBIC with pacing.
#[test]
fn flow_without_accecn_sends_no_ect1() {
    let case = behind("dualpi2", 40, 20);
    let without = run("none", &case, PRAGUE, Some(AccEcn::None), true);
    let classic = run("ect0", &case, ("prague", Ecn::Ect0), None, true);
    assert_eq!(fate(&without, 0), fate(&classic, 0));
    assert!(waited(&without.result.flows[0]).0 > 5.0, "in the classic queue");
}

/// Acknowledgements for up to 16 packets, some of them lost: the field of three bits may cycle between two that arrive. With
/// more loss of such acknowledgements timeouts stop the flow, and CUBIC without ECN, too.
#[test]
fn lost_and_thinned_acks_hardly_change_the_response() {
    for accecn in [AccEcn::Option, AccEcn::Counter] {
        for (every, loss) in [(2, "0%"), (2, "50%"), (16, "0%"), (16, "20%"), (16, "50%")] {
            let mut case = behind("dualpi2", 100, 20);
            case.path.uplink_loss = loss.parse().expect("a loss");
            let acks = AckPolicy { every, delay: Some(TimeDelta::from_millis(5)) };
            let flow =
                FlowSpec { acks, accecn: Some(accecn), ..flows(&["prague"], Ecn::Ect1, SECS)[0] };
            let name = format!("{accecn:?}, an ACK for {every} packets, {loss} of them lost");
            let run = print(&name, go(&case, vec![flow], SECS));
            let (used, (_, p95)) =
                (run.utilisation(10.0, SECS as f64), waited(&run.result.flows[0]));
            let is_starved = (every, loss) == (16, "50%");
            assert_eq!(used < 0.8, is_starved, "{name}: {used:.3}");
            assert!(p95 <= 1.5, "{name}: {p95:.2} ms");
        }
    }
}

/// All packets above a millisecond are marked, of any kind. The marks come in bursts, as the queue is above or below.
#[test]
fn step_holds_the_queue_at_its_threshold() {
    for (mbit, rtt_ms) in [(40, 10), (100, 20)] {
        let run = run("step", &behind("step", mbit, rtt_ms), PRAGUE, None, false);
        let (used, (p50, p95)) = (run.utilisation(10.0, SECS as f64), waited(&run.result.flows[0]));
        assert!(used >= 0.9, "{mbit} Mbit/s: {used:.3}");
        assert!(p50 <= 1.5 && p95 <= 3.0, "{mbit} Mbit/s: {p50:.2}, {p95:.2} ms");
    }
}
