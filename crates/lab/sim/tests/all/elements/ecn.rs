//! Marks instead of drops (RFC 3168), from the queue to the controller.

use uncork_path::Ecn;
use uncork_sim::{MSS_BYTES, RunSpec, Simulation};
use uncork_units::{Time, TimeDelta};

use crate::common::{Case, Run};
use crate::elements::scene::{at, behind, flows, go, total};

const SECS: u64 = 30;
const QUEUES: [&str; 3] = ["codel:ecn", "pie:ecn", "fq_codel"];

fn three(case: &Case, cc: &str, ecn: Ecn) -> Run {
    go(case, flows(&[cc; 3], ecn, SECS), SECS)
}

fn counts(queue: &str, cc: &str, ecn: Ecn) -> Counts {
    let run = three(&behind(queue, 20, 40), cc, ecn);
    let dropped = total(&run, |flow| flow.lab().packets_dropped_queue);
    let marked = total(&run, |flow| flow.packets_marked);
    let lost = total(&run, |flow| flow.packets_lost);
    let used = run.utilisation(5.0, SECS as f64);
    let late = (0..3).map(|flow| run.lost_bytes(flow, 5.0, SECS as f64)).sum();
    let wait = run.result.flows[0].lab().queue_ms.expect("sent").p50;
    println!(
        "{queue:>9} {cc:5} {ecn:?}: {dropped} dropped, {marked} marked, {lost} lost, used {used:.3}, \
         waited p50 {wait:.1} ms"
    );
    Counts { dropped, marked, used, late }
}

/// For three flows: drops, marks, link utilization, and bytes declared lost after 5 s.
struct Counts {
    dropped: u64,
    marked: u64,
    used: f64,
    late: u64,
}

/// A controller that treats marks as losses has the same utilization as with drops, without losing
/// packets. The same queue drops packets of flows without ECN. PIE does not mark above a drop
/// probability of 10 % (RFC 8033 §5.1), which occurs at the end of slow start.
#[test]
fn marks_replace_drops() {
    for queue in QUEUES {
        for cc in ["cubic", "reno"] {
            let with = counts(queue, cc, Ecn::Ect0);
            assert_eq!(with.late, 0, "{queue} {cc}");
            assert!(with.dropped == 0 || queue == "pie:ecn", "{queue} {cc}: {}", with.dropped);
            assert!(with.marked > 10, "{queue} {cc}: {}", with.marked);
            let without = counts(queue, cc, Ecn::NotEct);
            assert!(without.dropped > 10 && without.marked == 0, "{queue} {cc}");
            assert!((with.used - without.used).abs() <= 0.03, "{queue} {cc}");
        }
    }
}

/// RFC 3168 §6.1.2: the window is reduced once for all marks of a round trip.
#[test]
fn marks_of_one_round_trip_are_one_congestion_event() {
    for queue in QUEUES {
        for cc in ["cubic", "reno"] {
            let (reductions, marked) = reductions(queue, cc);
            println!("{queue:>9} {cc:5}: {} reductions, {marked} marks", reductions.len());
            let rtt = TimeDelta::from_millis(40);
            let apart = reductions.windows(2).map(|pair| pair[1].since(pair[0]));
            assert!(apart.min() >= Some(rtt), "{queue} {cc}");
            assert!(reductions.len() >= 5 && reductions.len() as u64 <= marked, "{queue} {cc}");
        }
    }
}

/// Times of a single flow's congestion events, visible as the start of recovery or a change of
/// ssthresh; and the number of marked packets.
fn reductions(queue: &str, cc: &str) -> (Vec<Time>, u64) {
    let flows = flows(&[cc], Ecn::Ect0, SECS);
    let run = RunSpec::over(behind(queue, 20, 40).path, flows, 1, at(1000 * SECS));
    let mut simulation = Simulation::new(&run);
    let (mut times, mut before) = (Vec::new(), (None, false));
    while simulation.step() {
        let Some(inside) = simulation.view(0).map(|view| view.snapshot) else { continue };
        let (ssthresh, recovers) = before;
        // The first ssthresh may come from HyStart++ ending slow start.
        let reduced = ssthresh.is_some() && inside.ssthresh != ssthresh;
        if reduced || inside.in_recovery && !recovers {
            times.push(simulation.now());
        }
        before = (inside.ssthresh, inside.in_recovery);
    }
    (times, simulation.into_result().flows[0].packets_marked)
}

/// Retransmissions of an ECT(0) flow are dropped instead of marked: RFC 3168 §6.1.5 requires them
/// to be Not-ECT. With ECT(1) they may be marked too (RFC 8311 §4.3). BBRv1 keeps a standing queue,
/// and random loss causes enough retransmissions.
#[test]
fn retransmissions_are_not_ecn_capable_except_with_l4s() {
    let mut case = behind("codel:ecn", 20, 40);
    case.path.loss = "every:50".parse().expect("a loss");
    for (ecn, drops) in [(Ecn::Ect0, true), (Ecn::Ect1, false)] {
        let run = three(&case, "bbr1", ecn);
        let dropped = total(&run, |flow| flow.lab().packets_dropped_queue);
        let repeated = total(&run, |flow| flow.bytes_retransmitted) / u64::from(MSS_BYTES);
        println!("bbr1 {ecn:?}: {dropped} dropped, {repeated} sent again");
        assert!(repeated > 500, "{repeated}");
        assert_eq!(dropped > 0, drops, "{ecn:?}: {dropped}");
        assert!(dropped < repeated, "{ecn:?}: {dropped} of {repeated}");
    }
}

/// BBRv1 ignores marks (draft-cardwell-iccrg-bbr-congestion-control-00 does not mention them): its
/// queue persists and is marked repeatedly. With ECT(0), BBRv2 and BBRv3 treat marks as losses.
#[test]
fn bbr_treats_marks_as_losses_except_version_1() {
    for queue in QUEUES {
        let [v1, v2, v3] = ["bbr1", "bbr2", "bbr3"].map(|cc| counts(queue, cc, Ecn::Ect0));
        let signals = |counts: &Counts| counts.marked + counts.dropped;
        assert!(signals(&v1) > 3 * signals(&v2).max(signals(&v3)), "{queue}: {}", signals(&v1));
        for heeding in [v2, v3] {
            assert!(heeding.marked > 0 && heeding.used >= 0.85, "{queue}: {:.3}", heeding.used);
        }
    }
    let mut plain = behind("codel", 20, 40);
    let [ignored, dropped] = ["codel:ecn", "codel"].map(|queue| {
        plain.path.link.queue = queue.parse().expect("a queue discipline");
        three(&plain, "bbr1", Ecn::Ect0).utilisation(5.0, SECS as f64)
    });
    assert!(ignored >= dropped - 0.02, "{ignored:.3} {dropped:.3}");
}

/// A queue that marks at a shallow threshold: three flows that answer in proportion (ECT(1)) use the link without losses, at most two round trips of queue.
#[test]
fn bbr_answers_shallow_marks_in_proportion() {
    let case = behind("codel:target=1ms,interval=10ms,ecn", 50, 10);
    for (cc, ecn) in [("bbr2", Ecn::Ect1), ("bbr3", Ecn::Ect1)] {
        let run = three(&case, cc, ecn);
        let marked = total(&run, |flow| flow.packets_marked);
        let late: u64 = (0..3).map(|flow| run.lost_bytes(flow, 5.0, SECS as f64)).sum();
        let used = run.utilisation(5.0, SECS as f64);
        let wait = run.result.flows[0].lab().queue_ms.expect("sent").p95;
        println!("{cc} {ecn:?}: {marked} marked, used {used:.3}, waited p95 {wait:.2} ms");
        assert!(marked > 100 && late == 0 && used >= 0.85, "{cc}: {marked} {late} {used:.3}");
        assert!(wait <= 20.0, "{cc}: {wait:.2}");
    }
}
