//! Comparison of two engines: the same cells and seeds, simulated and real.

use std::collections::HashMap;

use uncork_flow::{FlowRecord, quantile};
use uncork_path::HostJitter;
use uncork_sim::Offload;

use crate::engine::Engine;
use crate::scenario::{
    Axis, Class, Expectation, Metric, Quantity, Scenario, Selection, Statistic, Threshold, distinct,
};
use crate::sweep::FinishedRun;

impl Scenario {
    /// The scenario with the engine as an additional axis (the fastest), so that every table shows
    /// both. Its only thresholds check agreement: in each cell and class, the completion time with
    /// `other` (or the goodput, for classes without completions) relative to the simulator's may
    /// differ from 1 by at most `tolerance`, a fraction. Where several classes compete without
    /// completions, their shares may differ by 5 points.
    #[must_use]
    pub fn compared_with_simulator(&self, other: Engine, tolerance: f64) -> Self {
        let sides = [Engine::Sim, other];
        let mut both = self.clone();
        let engine = both.axes.len();
        both.axes.push(Axis {
            key: "run.engine".into(),
            name: "engine".into(),
            values: sides.map(|side| side.to_string()).into(),
            written: sides.map(|side| side.to_string()).into(),
            parts: Vec::new(),
        });
        both.cells = self.cells.iter().flat_map(|cell| vec![cell.clone(); sides.len()]).collect();
        for (index, cell) in both.cells.iter_mut().enumerate() {
            cell.point.push(index % sides.len());
        }
        both.figures.clear();
        both.published.clear();
        let shares = self.shares();
        both.thresholds = match shares.len() {
            0 => self.compared().map(|class| agrees(class, (engine, other), tolerance)).collect(),
            _ => shares.into_iter().map(|class| agrees_in_share(class, (engine, other))).collect(),
        };
        both
    }

    /// The classes with compared shares. If at least two classes have shares and none has
    /// completions: all but the last, which has the rest.
    fn shares(&self) -> Vec<&Class> {
        let mut classes: Vec<&Class> = self.compared().collect();
        let last = classes.pop();
        let ends = |class: &&Class| class.has(Metric::Completion);
        if last.iter().chain(&classes).any(ends) { Vec::new() } else { classes }
    }

    /// The scenario for a comparison with `other`. The kernel's controllers are not always those of
    /// the standards, so that both sides get [`uncork_cc::CcSpec::as_in_linux`]. Its hosts are in
    /// network namespaces, so that the simulator's usual hosts become [`HostJitter::Virtual`] and, unless
    /// the scenario has another, their offload [`Offload::Host`].
    #[must_use]
    pub fn for_comparison_with(mut self, other: Engine) -> Self {
        if other.is_in_real_time() {
            for cell in &mut self.cells {
                if cell.host_jitter == HostJitter::Usual {
                    cell.host_jitter = HostJitter::Virtual;
                }
                cell.offload.get_or_insert(Offload::Host);
            }
        }
        if other == Engine::Netns {
            for cell in &mut self.cells {
                for (class, flow) in cell.classes.iter_mut().zip(&mut cell.plan.flows) {
                    flow.ccs.iter_mut().for_each(|cc| *cc = cc.as_in_linux());
                    class.ccs = distinct(&flow.ccs);
                }
            }
        }
        self
    }

    /// Each non-background class, in order of first appearance.
    fn compared(&self) -> impl Iterator<Item = &Class> {
        let mut names: Vec<&str> = Vec::new();
        let all = self.cells.iter().flat_map(|cell| &cell.classes);
        all.filter(move |class| {
            let is_new = !class.background && !names.contains(&class.name.as_str());
            names.extend(is_new.then_some(class.name.as_str()));
            is_new
        })
    }
}

impl FinishedRun {
    /// Marks the run as one of [`Scenario::compared_with_simulator`] that ran on `engine`.
    #[must_use]
    pub fn on(mut self, engine: Engine) -> Self {
        self.outcome.cell = self.outcome.cell * 2 + usize::from(engine != Engine::Sim);
        self
    }
}

/// The part of the simulator's round-trip time by which hosts may be later than its hosts,
const LATE_SHARE: f64 = 0.05;
/// and the time, in milliseconds, that does not matter on any path.
const LATE_MS: f64 = 0.5;

/// Adds a doubt to each run in real time with late hosts: its round-trip times exceed path and queue by more than in the
/// simulated run. An emulator reports itself that it is late. `runs` are of [`Scenario::compared_with_simulator`].
pub fn mark_late_hosts(runs: &mut [FinishedRun]) {
    let of_sim = runs.iter().filter(|run| run.outcome.cell % 2 == 0);
    let pair = |run: &FinishedRun| (run.outcome.cell / 2, run.outcome.seed);
    let simulated: HashMap<_, _> =
        of_sim.map(|run| (pair(run), (host_delays(run), limit(run)))).collect();
    for run in runs.iter_mut().filter(|run| run.outcome.cell % 2 == 1) {
        let Some((in_simulator, limit)) = simulated.get(&pair(run)) else { continue };
        let delays = host_delays(run);
        let later =
            delays.iter().zip(in_simulator).filter_map(|(real, sim)| Some((*real)? - (*sim)?));
        let later: Vec<f64> = later.collect();
        if let Some(late) = quantile(&later, 0.5).filter(|late| late > limit) {
            run.outcome.doubts.push(format!(
                "its hosts were late: round-trip times {late:.1} ms above path and queue; use fewer --jobs"
            ));
        }
    }
}

/// The median round-trip time of each flow without its queue, in milliseconds.
fn host_delays(run: &FinishedRun) -> Vec<Option<f64>> {
    let queue = |flow: &FlowRecord| flow.lab.and_then(|lab| lab.queue_ms);
    let delay = |flow: &FlowRecord| Some(flow.rtt_ms?.p50 - queue(flow)?.p50);
    run.outcome.flows.iter().map(delay).collect()
}

/// By how much hosts may be later than those of this simulated run, in milliseconds.
fn limit(run: &FinishedRun) -> f64 {
    let rtts = run.outcome.flows.iter().filter_map(|flow| flow.rtt_ms);
    let rtts: Vec<f64> = rtts.map(|rtt| rtt.p50).collect();
    quantile(&rtts, 0.5).map_or(LATE_MS, |rtt| (LATE_SHARE * rtt).max(LATE_MS))
}

/// Points by which shares may differ.
const SHARE_TOLERANCE: f64 = 0.05;

/// Cells of the class on a side, a value of the axis.
fn on(class: &Class, axis: usize, side: usize) -> Selection {
    Selection { class: Some(class.name.clone()), at: vec![(axis, side)], ..Selection::default() }
}

/// Threshold: on the other engine, the second value of `axis`, a class has the share that it has in
/// the simulator.
fn agrees_in_share(class: &Class, (axis, other): (usize, Engine)) -> Threshold {
    let percent = 100.0 * SHARE_TOLERANCE;
    Threshold {
        measures: format!("share.mean on {other} - on {}", Engine::Sim),
        min_text: format!("-{percent}%"),
        max_text: format!("{percent}%"),
        of: on(class, axis, 1),
        quantity: Quantity { metric: Metric::Share, statistic: Statistic::Mean },
        over: None,
        minus: Some(on(class, axis, 0)),
        expected: Expectation { min: Some(-SHARE_TOLERANCE), max: Some(SHARE_TOLERANCE) },
    }
}

/// Threshold: on the other engine, the second value of `axis`, a class matches its result in the
/// simulator.
fn agrees(class: &Class, (axis, other): (usize, Engine), tolerance: f64) -> Threshold {
    let (metric, statistic) = if class.has(Metric::Completion) {
        (Metric::Completion, Statistic::Quantile(0.5))
    } else {
        (Metric::Goodput, Statistic::Mean)
    };
    let quantity = Quantity { metric, statistic };
    let name = format!("{}.{}", metric.name(), statistic.name());
    let (least, most) = (1.0 - tolerance, 1.0 + tolerance);
    Threshold {
        measures: format!("{name} on {other} / on {}", Engine::Sim),
        min_text: format!("{least}"),
        max_text: format!("{most}"),
        of: on(class, axis, 1),
        quantity,
        over: Some(on(class, axis, 0)),
        minus: None,
        expected: Expectation { min: Some(least), max: Some(most) },
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::builtin::NoFiles;
    use crate::sweep::{SweepResults, items, run_items};
    use uncork_testkit::assert_message;

    const SCENARIO: &str = r#"title = "Two"
[run]
seeds = 8
end = "3s"
[path]
rate = "20mbit"
rtt = "20ms"
loss = "1%"
[flow.main]
transfer = "50kB"
cc = "cubic"
[flow.bulk]
bulk = "end"
cc = "bbr1"
[flow.noise]
background = true
bulk = "end"
cc = "reno"
[matrix]
"path.rtt" = ["20ms", "40ms"]
"#;

    /// The rows of the result if the second side is the first one slowed down by `slower`.
    fn rows(slower: u64) -> Vec<(String, f64, bool)> {
        let scenario = Scenario::parse("two", SCENARIO, &[], &NoFiles).unwrap();
        let (of, stop) = ((&scenario, Engine::Sim), AtomicBool::new(false));
        let simulated = run_items(of, &items(&scenario), 2, &stop, &|_, _| {}).unwrap();
        let mut real = simulated.clone();
        for flow in real.iter_mut().flat_map(|run| &mut run.outcome.flows) {
            flow.completion_ns = flow.completion_ns.map(|nanos| nanos * slower / 100);
        }
        let simulated = simulated.into_iter().map(|run| run.on(Engine::Sim));
        let runs = simulated.chain(real.into_iter().map(|run| run.on(Engine::Netns)));
        let both = scenario.compared_with_simulator(Engine::Netns, 0.1);
        let results = SweepResults::new(runs.collect());
        let document = results.document(&both, "uncork".into(), false);
        assert_eq!((document.cells.len(), document.axes.len()), (4, 2));
        let row = |row: uncork_report::lab::Threshold| {
            (format!("{}, {}", row.class, row.text), row.measured.unwrap(), row.passed)
        };
        document.thresholds.into_iter().map(row).collect()
    }

    #[test]
    fn linux_is_compared_with_its_own_cubic() {
        let ccs = |other| {
            let scenario = Scenario::parse("two", SCENARIO, &[], &NoFiles).expect("a scenario");
            let scenario = scenario.for_comparison_with(other);
            let classes = scenario.cells.into_iter().flat_map(|cell| cell.classes);
            classes.take(3).flat_map(|class| class.ccs).collect::<Vec<_>>()
        };
        assert_eq!(ccs(Engine::Netns), ["cubic:linux", "bbr1", "reno"]);
        assert_eq!(ccs(Engine::QuicSim), ["cubic", "bbr1", "reno"]);
    }

    #[test]
    fn hosts_in_namespaces_have_no_network_card() {
        let jitter = |other, set: &[(String, String)]| {
            let scenario = Scenario::parse("two", SCENARIO, set, &NoFiles).expect("a scenario");
            scenario.for_comparison_with(other).cells[0].host_jitter
        };
        assert_eq!(jitter(Engine::Netns, &[]), HostJitter::Virtual);
        assert_eq!(jitter(Engine::Bpf, &[]), HostJitter::Virtual);
        assert_eq!(jitter(Engine::QuicSim, &[]), HostJitter::Usual);
        let none = [("run.host_jitter".into(), "none".into())];
        assert_eq!(jitter(Engine::Netns, &none), HostJitter::NONE);
    }

    #[test]
    fn hosts_in_namespaces_cut_packets_themselves() {
        let offload = |other, set: &[(String, String)]| {
            let scenario = Scenario::parse("two", SCENARIO, set, &NoFiles).expect("a scenario");
            scenario.for_comparison_with(other).cells[0].offload
        };
        assert_eq!(offload(Engine::Netns, &[]), Some(Offload::Host));
        assert_eq!(offload(Engine::QuicSim, &[]), None);
        for (text, asked) in [("none", Offload::None), ("card", Offload::Card)] {
            let set = [("run.offload".into(), text.into())];
            assert_eq!(offload(Engine::Bpf, &set), Some(asked));
        }
    }

    #[test]
    fn an_engine_agrees_with_itself_in_every_cell_and_class() {
        let rows = rows(100);
        assert_eq!(rows.len(), 2 * 2 * 2, "two classes, two cells, two bounds: {rows:?}");
        assert!(rows.iter().all(|(_, measured, passed)| (measured - 1.0).abs() < 1e-9 && *passed));
        for row in [0, 4] {
            assert_message!(row, rows[row].0);
        }
    }

    /// A mix of three classes; the second side gives `moved` of BBR's bytes to CUBIC.
    fn shares(moved: f64) -> Vec<(String, f64, bool)> {
        let mix = SCENARIO.replace("transfer = \"50kB\"", "bulk = \"end\"");
        let scenario = Scenario::parse("mix", &mix, &[], &NoFiles).expect("a scenario");
        let stop = AtomicBool::new(false);
        let of = (&scenario, Engine::Sim);
        let simulated = run_items(of, &items(&scenario), 2, &stop, &|_, _| {}).expect("runs");
        let mut real = simulated.clone();
        for run in &mut real {
            let [main, bulk, ..] = &mut run.outcome.flows[..] else { panic!("three flows") };
            let bytes = (moved * bulk.bytes_delivered as f64) as u64;
            main.bytes_delivered += bytes;
            bulk.bytes_delivered -= bytes;
        }
        let simulated = simulated.into_iter().map(|run| run.on(Engine::Sim));
        let runs = simulated.chain(real.into_iter().map(|run| run.on(Engine::Netns)));
        let both = scenario.compared_with_simulator(Engine::Netns, 0.1);
        let results = SweepResults::new(runs.collect());
        let document = results.document(&both, "uncork".into(), false);
        let row = |row: uncork_report::lab::Threshold| {
            (format!("{}, {}", row.class, row.text), row.measured.expect("measured"), row.passed)
        };
        document.thresholds.into_iter().map(row).collect()
    }

    #[test]
    fn classes_that_compete_are_compared_by_their_shares() {
        let same = shares(0.0);
        assert_eq!(same.len(), 2 * 2, "two cells, two bounds, one class: {same:?}");
        assert!(same.iter().all(|(_, points, passed)| points.abs() < 1e-9 && *passed), "{same:?}");
        assert_message!("shares", same[0].0);
        let moved = shares(0.2);
        let missed = moved.iter().filter(|(_, points, passed)| *points > 5.0 && !*passed);
        assert_eq!(missed.count(), 2, "too much for main: {moved:?}");
    }

    /// The doubts of runs with endpoints that add `later` ms to all round-trip times and `queued` ms of queue.
    fn doubts(later: f64, queued: f64) -> Vec<String> {
        let scenario = Scenario::parse("two", SCENARIO, &[], &NoFiles).expect("a scenario");
        let (of, stop) = ((&scenario, Engine::Sim), AtomicBool::new(false));
        let simulated = run_items(of, &items(&scenario), 2, &stop, &|_, _| {}).expect("runs");
        let mut real = simulated.clone();
        for flow in real.iter_mut().flat_map(|run| &mut run.outcome.flows) {
            flow.rtt_ms.as_mut().expect("samples").p50 += later + queued;
            flow.lab.as_mut().and_then(|lab| lab.queue_ms.as_mut()).expect("a queue").p50 += queued;
        }
        let simulated = simulated.into_iter().map(|run| run.on(Engine::Sim));
        let mut runs: Vec<_> =
            simulated.chain(real.into_iter().map(|run| run.on(Engine::Netns))).collect();
        mark_late_hosts(&mut runs);
        assert!(runs.iter().all(|run| run.outcome.cell % 2 == 1 || run.outcome.doubts.is_empty()));
        runs.into_iter().flat_map(|run| run.outcome.doubts).collect()
    }

    #[test]
    fn late_hosts_are_seen_and_long_queues_are_not_theirs() {
        assert_eq!(doubts(0.1, 0.0), Vec::<String>::new());
        assert_eq!(doubts(0.1, 50.0), Vec::<String>::new(), "a result, not a fault of the machine");
        let late = doubts(6.0, 0.0);
        assert_eq!(late.len(), 16, "two cells of eight seeds: {late:?}");
        assert_message!("late by 6 ms", late[0]);
    }

    #[test]
    fn a_fifth_slower_does_not_agree() {
        let rows = rows(120);
        let missed: Vec<&str> =
            rows.iter().filter(|row| !row.2).map(|(text, ..)| text.as_str()).collect();
        assert_eq!(missed.len(), 2, "{missed:?}");
        assert_message!("slower", missed[0]);
        assert!((rows[0].1 - 1.2).abs() < 1e-3);
    }
}
