//! DualPI2 with packets in both queues. None of the controllers here is scalable: no flow answers to
//! the share of marked packets, as one should that sets ECT(1). What is tested is what the queue
//! promises whatever is in its L queue: classic flows keep their delay and are not starved.

use uncork_path::Ecn;

use crate::common::Run;
use crate::scene::{behind, flows, go, total, waited};

const SECS: u64 = 30;

/// Two classic CUBIC flows and two of `cc` that set ECT(1), at 40 Mbit/s and 20 ms.
fn beside(cc: &str) -> Run {
    let mut all = flows(&["cubic"; 2], Ecn::NotEct, SECS);
    all.extend(flows(&[cc; 2], Ecn::Ect1, SECS));
    let run = go(&behind("dualpi2", 40, 20), all, SECS);
    let [classic, .., low] = &run.result.flows[..] else { panic!("four flows") };
    let (at, of) = (waited(classic), waited(low));
    println!(
        "classic CUBIC beside {cc} with ECT(1): waited p50 {:.2}, {:.2} ms, p95 {:.2}, {:.2} ms, \
         classic share {:.3}, used {:.3}, {} marks of {} packets, {} drops",
        at.0,
        of.0,
        at.1,
        of.1,
        run.share(0, 5.0, 30.0) + run.share(1, 5.0, 30.0),
        run.utilisation(5.0, 30.0),
        low.packets_marked,
        low.packets_sent,
        total(&run, |flow| flow.packets_dropped_queue),
    );
    run
}

/// A flow that takes a mark for a loss leaves the link to those that meet fewer: the L queue marks from
/// 0.8 ms on, the classic one drops with the square of the probability. It waits next to nothing.
#[test]
fn flows_that_heed_marks_as_losses_are_modest() {
    for cc in ["reno", "cubic", "bbr2", "bbr3"] {
        let run = beside(cc);
        let (classic, low) = (waited(&run.result.flows[0]), waited(&run.result.flows[3]));
        assert!((7.5..=45.0).contains(&classic.0), "{cc}: {classic:?} ms");
        assert!(low.0 <= 1.2 && low.1 <= classic.1, "{cc}: {low:?} ms");
        assert!(run.result.flows[3].packets_marked > 0, "{cc}");
        let share = run.share(0, 5.0, 30.0) + run.share(1, 5.0, 30.0);
        assert!(share >= 0.5, "{cc}: {share:.3}");
        assert!(run.utilisation(5.0, 30.0) >= 0.9, "{cc}");
    }
}

/// BBRv1 does not read marks. All its packets are marked, then the queue is overloaded and drops packets
/// of both kinds (RFC 9332 §4.2.2), of classic flows up to a quarter, which leaves CUBIC little: less
/// than PIE does, where BBRv1 heeds as little. Nobody is shut out.
#[test]
fn a_flow_that_ignores_marks_harms_others_but_shuts_nobody_out() {
    let run = beside("bbr1");
    let low = &run.result.flows[3];
    assert!(low.packets_marked * 2 > low.packets_sent, "{} marks", low.packets_marked);
    assert!(low.packets_dropped_queue > 100, "{} drops", low.packets_dropped_queue);
    let pie = go(
        &behind("pie", 40, 20),
        flows(&["cubic", "cubic", "bbr1", "bbr1"], Ecn::NotEct, SECS),
        SECS,
    );
    let [dual, single] = [&run, &pie].map(|run| run.share(0, 5.0, 30.0) + run.share(1, 5.0, 30.0));
    println!("classic share: {dual:.4} beside marked BBRv1, {single:.4} beside it under PIE");
    assert!(dual < 0.25 && single < 0.25, "{dual:.4} {single:.4}");
    for from in [5.0, 10.0, 15.0, 20.0, 25.0] {
        assert!(run.goodput(0, from, from + 5.0) > 0.0, "stalled at {from} s");
    }
}
