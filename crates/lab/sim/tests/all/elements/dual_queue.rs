//! DualPI2 with packets in both queues. Of these controllers only BBRv2 and BBRv3 respond to the share
//! of marked packets, as a sender of ECT(1) should. Tested is what the queue guarantees regardless of
//! its L queue: classic flows keep their delay and are not starved.

use uncork_path::Ecn;

use crate::common::Run;
use crate::elements::scene::{behind, flows, go, total, waited};

const SECS: u64 = 30;

/// Two classic CUBIC flows and two ECT(1) flows of `cc`, at 40 Mbit/s and 20 ms.
fn next_to_classic(cc: &str) -> Run {
    behind_with("dualpi2", cc, Ecn::Ect1)
}

fn behind_with(queue: &str, cc: &str, ecn: Ecn) -> Run {
    let mut all = flows(&["cubic"; 2], Ecn::NotEct, SECS);
    all.extend(flows(&[cc; 2], ecn, SECS));
    let run = go(&behind(queue, 40, 20), all, SECS);
    let [classic, .., low] = &run.result.flows[..] else { panic!("four flows") };
    let (at, of) = (waited(classic), waited(low));
    println!(
        "{queue}: classic CUBIC next to {cc} with {ecn:?}: waited p50 {:.2}, {:.2} ms, p95 {:.2}, {:.2} ms, \
         classic share {:.3}, used {:.3}, {} marks of {} packets, {} drops",
        at.0,
        of.0,
        at.1,
        of.1,
        classic_share(&run),
        run.utilisation(5.0, 30.0),
        low.packets_marked,
        low.packets_sent,
        total(&run, |flow| flow.lab().packets_dropped_queue),
    );
    run
}

/// A flow that treats a mark as a loss yields to flows with fewer signals: the L queue marks from
/// 0.8 ms on, while the classic queue drops with the square of the probability. Its own queueing
/// delay is close to zero.
#[test]
fn flows_that_treat_marks_as_losses_yield() {
    for cc in ["reno", "cubic"] {
        let run = next_to_classic(cc);
        let (classic, low) = (waited(&run.result.flows[0]), waited(&run.result.flows[3]));
        assert!((7.5..=45.0).contains(&classic.0), "{cc}: {classic:?} ms");
        assert!(low.0 <= 1.2 && low.1 <= classic.1, "{cc}: {low:?} ms");
        assert!(run.result.flows[3].packets_marked > 0, "{cc}");
        let share = classic_share(&run);
        assert!(share >= 0.5, "{cc}: {share:.3}");
        assert!(run.utilisation(5.0, 30.0) >= 0.9, "{cc}");
    }
}

/// A flow that answers in proportion does not yield to the classic flows, and does not starve them.
#[test]
fn flows_that_answer_in_proportion_share() {
    for cc in ["bbr2", "bbr3"] {
        let run = next_to_classic(cc);
        let low = waited(&run.result.flows[3]);
        assert!(low.0 <= 2.0, "{cc}: {low:?} ms");
        let share = classic_share(&run);
        assert!((0.2..=0.8).contains(&share), "{cc}: {share:.3}");
        assert!(run.utilisation(5.0, 30.0) >= 0.9, "{cc}");
    }
}

fn classic_share(run: &Run) -> f64 {
    run.share(0, 5.0, 30.0) + run.share(1, 5.0, 30.0)
}

/// Share of the first flow's packets dropped by the queue.
fn classic_loss(run: &Run) -> f64 {
    let classic = &run.result.flows[0];
    classic.lab().packets_dropped_queue as f64 / classic.packets_sent as f64
}

/// BBRv1 ignores marks. All its packets are marked, and no flow yields until the base probability
/// is 1/k. From there on, packets of both kinds are dropped (RFC 9332 §4.2.3, A.2: drop on
/// saturation), which keeps the L queue at the classic target. But classic packets are then dropped
/// with p_Cmax = 1/k^2, a quarter, which leaves CUBIC little. That is the cost of ignoring marks:
/// BBRv1 without ECN leaves more, and so does a larger k. No flow is starved completely.
#[test]
fn flow_that_ignores_marks_harms_others_but_does_not_starve_them() {
    let run = next_to_classic("bbr1");
    let low = &run.result.flows[3];
    assert!(low.packets_marked * 2 > low.packets_sent, "{} marks", low.packets_marked);
    assert!(low.lab().packets_dropped_queue > 100, "{} drops", low.lab().packets_dropped_queue);
    let pie = go(
        &behind("pie", 40, 20),
        flows(&["cubic", "cubic", "bbr1", "bbr1"], Ecn::NotEct, SECS),
        SECS,
    );
    let [dual, single] = [&run, &pie].map(classic_share);
    println!("classic share: {dual:.4} next to marked BBRv1, {single:.4} under PIE");
    assert!(dual < 0.25 && single < 0.25, "{dual:.4} {single:.4}");
    let waits = waited(low).0;
    assert!((12.0..=18.0).contains(&waits), "{waits:.1} ms in the L queue");
    let honest = behind_with("dualpi2", "bbr1", Ecn::NotEct);
    let other_k = behind_with("dualpi2:k=3", "bbr1", Ecn::Ect1);
    let runs = [&run, &honest, &other_k].map(|run| (classic_loss(run), classic_share(run)));
    println!("classic loss and share: ECT(1), no ECN, k = 3: {runs:.3?}");
    let [ect1, honest, other_k] = runs;
    assert!((0.2..=0.27).contains(&ect1.0) && (0.08..=0.14).contains(&other_k.0), "{runs:.3?}");
    assert!(honest.1 > 1.5 * ect1.1 && other_k.1 > 1.5 * ect1.1, "{runs:.3?}");
    for from in [5.0, 10.0, 15.0, 20.0, 25.0] {
        assert!(run.goodput(0, from, from + 5.0) > 0.0, "stalled at {from} s");
    }
}
