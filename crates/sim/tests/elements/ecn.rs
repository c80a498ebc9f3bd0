//! Marks instead of drops (RFC 3168), from the queue to the controller.

use uncork_path::Ecn;
use uncork_sim::{MSS_BYTES, RunSpec, Simulation};
use uncork_units::{Time, TimeDelta};

use crate::common::{Case, Run};
use crate::scene::{at, behind, flows, go, total};

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

/// Of three flows: drops, marks, the share of the link, and the bytes declared lost after 5 s.
struct Counts {
    dropped: u64,
    marked: u64,
    used: f64,
    late: u64,
}

/// A controller that takes a mark as it takes a loss uses the link as it does with drops, and loses
/// nothing; who does not know marks is dropped, by the same queue. PIE does not mark when it would drop
/// more than one packet in ten (RFC 8033 §5.1), as it does at the end of slow start.
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

/// RFC 3168 §6.1.2: the window is reduced once for the marks of a round trip.
#[test]
fn a_round_trip_of_marks_is_one_congestion_event() {
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

/// When a lone flow met congestion, which shows as a recovery that begins or as another ssthresh; and how
/// many packets were marked.
fn reductions(queue: &str, cc: &str) -> (Vec<Time>, u64) {
    let flows = flows(&[cc], Ecn::Ect0, SECS);
    let run = RunSpec::over(behind(queue, 20, 40).path, flows, 1, at(1000 * SECS));
    let mut simulation = Simulation::new(&run);
    let (mut times, mut before) = (Vec::new(), (None, false));
    while simulation.step() {
        let Some(inside) = simulation.view(0).map(|view| view.snapshot) else { continue };
        let (ssthresh, recovers) = before;
        // The first ssthresh may be where slow start ended by itself, as HyStart++ ends it.
        let reduced = ssthresh.is_some() && inside.ssthresh != ssthresh;
        if reduced || inside.in_recovery && !recovers {
            times.push(simulation.now());
        }
        before = (inside.ssthresh, inside.in_recovery);
    }
    (times, simulation.into_result().flows[0].packets_marked)
}

/// What is sent again is not marked but dropped when it says ECT(0): RFC 3168 §6.1.5 has it say nothing
/// of ECN. With ECT(1) it may be marked, too (RFC 8311 §4.3). BBRv1 keeps the queue standing, and random
/// loss makes it repeat enough.
#[test]
fn what_is_sent_again_is_not_ecn_capable_but_for_l4s() {
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

/// BBRv1 does not look at marks (draft-cardwell-iccrg-bbr-congestion-control-00 says nothing of them):
/// its queue stays, and is marked again and again. BBRv2 and BBRv3 take them for losses.
#[test]
fn bbr_takes_marks_for_losses_but_version_1_ignores_them() {
    for queue in QUEUES {
        let [v1, v2, v3] = ["bbr1", "bbr2", "bbr3"].map(|cc| counts(queue, cc, Ecn::Ect0));
        let told = |counts: &Counts| counts.marked + counts.dropped;
        assert!(told(&v1) > 3 * told(&v2).max(told(&v3)), "{queue}: {}", told(&v1));
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
