//! Doubts where a queue marks packets of a controller that does not answer marks as the queue expects.

use std::collections::BTreeMap;

use uncork_cc::Algorithm;
use uncork_path::{Ecn, QueueSpec};
use uncork_units::TimeDelta;

use super::results::RunResults;
use crate::scenario::{CellPlan, FlowPlan};

/// A class, one of its controllers, and the queue that marks its packets.
type Marked<'a> = (&'a str, String, String);

/// A doubt for each controller of a class that does not answer the marks on its packets as the queue expects.
pub(crate) fn doubts(results: &RunResults<'_>) -> Vec<String> {
    let mut found: BTreeMap<Marked<'_>, (u64, &str)> = BTreeMap::new();
    for (index, cell) in results.scenario.cells.iter().enumerate() {
        for flow in &cell.plan.flows {
            let Some(queue) = queue(&cell.plan, flow) else { continue };
            for cc in &flow.ccs {
                let Some(answer) = unexpected(cc.algorithm(), flow.ecn_of(*cc), queue) else {
                    continue;
                };
                let key = (flow.name.as_str(), cc.to_string(), queue.to_string());
                let of_class = results.of_cell(index).iter().flat_map(|run| &run.flows);
                let of_cc = of_class.filter(|it| it.group == flow.name && it.cc == key.1.as_str());
                let marked: u64 = of_cc.map(|flow| flow.packets_marked).sum();
                let of_list = flow.ccs.iter().filter(|other| *other == cc).count() as u64;
                found.entry(key).or_insert((0, answer)).0 += marked / of_list;
            }
        }
    }
    let marked = found.into_iter().filter(|(_, (marked, _))| *marked > 0);
    let sentence = |((class, cc, queue), (marked, answer)): (Marked<'_>, (u64, &str))| {
        format!("{queue} marked {marked} packets of {cc} in [flow.{class}], which {answer}.")
    };
    marked.map(sentence).collect()
}

/// The queue on the way of `flow` that can mark packets.
fn queue(plan: &CellPlan, flow: &FlowPlan) -> Option<QueueSpec> {
    let path = &plan.paths[flow.path].spec;
    let via = path.via.iter().filter_map(|link| plan.links.get(*link));
    let mut queues = via.chain([&path.link]).map(|link| link.queue);
    queues.find(|queue| *queue != QueueSpec::DropTail)
}

/// The reaction of a controller to marks, and the remedy, if its queue expects another: one in
/// proportion behind a shallow threshold for ECT(1) (RFC 9331 §4.3), elsewhere the reaction to
/// a loss (RFC 3168 §5).
fn unexpected(algorithm: Algorithm, ecn: Ecn, queue: QueueSpec) -> Option<&'static str> {
    let is_shallow = ecn == Ecn::Ect1 && is_for_l4s(queue);
    match (algorithm, ecn) {
        (_, Ecn::NotEct) => None,
        (Algorithm::Bbr1, _) => Some(
            "does not answer marks, as in Linux: it takes what other flows leave; use ecn = \"none\", or \
             bbr3",
        ),
        (Algorithm::Reno | Algorithm::Cubic, _) if is_shallow => Some(
            "answers a mark as a loss, where the queue expects an answer in proportion (RFC 9331 §4.3): \
             it gets too little; use ecn = \"ect0\"",
        ),
        (Algorithm::Bbr2 | Algorithm::Bbr3, Ecn::Ect1) if !is_shallow => Some(
            "answers marks of ECT(1) in proportion, where the queue marks as seldom as it would drop: it \
             takes too much; use ecn = \"ect0\"",
        ),
        _ => None,
    }
}

/// Whether the queue marks ECT(1) at a shallow threshold: up to 2 ms, for a step of packets of any kind.
fn is_for_l4s(queue: QueueSpec) -> bool {
    match queue {
        QueueSpec::DualPi2(_) => true,
        QueueSpec::Step(step) => step.threshold <= TimeDelta::from_millis(2),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use uncork_testkit::assert_message;

    use crate::{Engine, Scenario, SweepResults, items, run_items};

    /// The doubts about one flow next to a CUBIC flow that sends without ECN.
    fn doubts(cc: &str, ecn: &str, queue: &str) -> Vec<String> {
        let text = format!(
            "title = \"L4S\"\n[run]\nend = \"4s\"\nseeds = 1\n[path]\nrate = \"20mbit\"\nrtt = \"10ms\"\n\
             queue = \"{queue}\"\nbuffer = \"2000p\"\n\
             [flow.l4s]\ncc = \"{cc}\"\necn = \"{ecn}\"\nbulk = \"3s\"\n\
             [flow.legacy]\ncc = \"cubic\"\nbulk = \"3s\"\n"
        );
        let scenario = Scenario::parse("l4s", &text, &[], &crate::builtin::NoFiles).expect("valid");
        let (all, stop) = (items(&scenario), AtomicBool::new(false));
        let runs = run_items((&scenario, Engine::Sim), &all, 1, &stop, &|_, _| {}).expect("runs");
        SweepResults::new(runs).document(&scenario, String::new(), false).doubts
    }

    #[test]
    fn queue_and_class_are_named_where_a_mark_has_no_answer() {
        for (cc, ecn, queue) in [
            ("bbr1", "ect1", "dualpi2"),
            ("bbr1", "ect0", "fq_codel"),
            ("cubic", "ect1", "dualpi2"),
            ("bbr2", "ect1", "codel:ecn"),
        ] {
            let doubts = doubts(cc, ecn, queue);
            let [doubt] = &doubts[..] else { panic!("{cc} {ecn} {queue}: {doubts:?}") };
            assert!(doubt.starts_with(queue) && doubt.contains("[flow.l4s]"), "{doubt}");
            let (_, answer) = doubt.split_once(" packets ").expect("a count of them");
            assert_message!(format!("{cc} {ecn} {queue}"), answer);
        }
    }

    #[test]
    fn expected_answers_are_no_doubt() {
        for (cc, ecn, queue) in [
            ("bbr2", "ect1", "dualpi2"),
            ("bbr2", "ect1", "step"),
            ("bbr3", "ect0", "codel:ecn"),
            ("cubic", "ect0", "dualpi2"),
            ("bbr1", "none", "dualpi2"),
            ("bbr1", "ect0", "droptail"),
        ] {
            assert_eq!(doubts(cc, ecn, queue), [""; 0], "{cc} {ecn} {queue}");
        }
    }
}
