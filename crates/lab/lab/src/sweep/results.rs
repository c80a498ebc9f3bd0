//! The results of all runs of a scenario, and the files that contain them.

use uncork_flow::{FlowRecord, SeriesPoint};
use uncork_report::lab::{DataFile, LabDocument};

use super::run::FinishedRun;
use crate::evaluate::{CommandOutcome, RunOutcome, SampledCell, comparison_document, document};
use crate::scenario::Scenario;

/// Names of the files, in the order of [`SweepResults::files`].
pub const SWEEP_FILES: [&str; 7] = [
    "scenario.toml",
    "report.html",
    "summary.json",
    "cells.csv",
    "flows.parquet",
    "objects.parquet",
    "series.parquet",
];

/// Contents of the files except the report.
const CONTENTS: [(&str, &str); 6] = [
    ("scenario.toml", "the scenario as it was run"),
    ("summary.json", "this report's data as JSON"),
    ("cells.csv", "the table of results, a line for each metric of each class and cell"),
    ("flows.parquet", "a row for each flow of each run"),
    ("objects.parquet", "a row for each transfer and each request of each run"),
    (
        "series.parquet",
        "the state of flows over time, of the runs that `sample` and `series` ask for",
    ),
];

/// The directory of [`SweepResults::command_files`] among the files.
pub const COMMAND_FILES: &str = "commands";

/// All runs of a scenario, by cell and seed.
#[derive(Clone, Debug)]
pub struct SweepResults {
    pub(super) runs: Vec<RunOutcome>,
    /// Time series of some runs: cell, seed, points.
    pub(super) series: Vec<(usize, u64, Vec<SeriesPoint>)>,
}

impl SweepResults {
    /// The results of `runs`, in any order.
    pub fn new(mut runs: Vec<FinishedRun>) -> Self {
        runs.sort_unstable_by_key(FinishedRun::item);
        let mut all = Self { runs: Vec::with_capacity(runs.len()), series: Vec::new() };
        for FinishedRun { outcome, series } in runs {
            if !series.is_empty() {
                all.series.push((outcome.cell, outcome.seed, series));
            }
            all.runs.push(outcome);
        }
        all
    }

    /// The same results with the time series of `runs`, which sampling has not changed.
    #[must_use]
    pub fn with_series(&self, runs: Vec<FinishedRun>) -> Self {
        Self { runs: self.runs.clone(), series: Self::new(runs).series }
    }

    /// The result document. `command` reproduces the runs; with `has_files` it lists the files
    /// written next to it.
    pub fn document(&self, scenario: &Scenario, command: String, has_files: bool) -> LabDocument {
        let document = document(scenario, &self.runs, &self.sampled(scenario), command);
        if has_files { self.with_files(document) } else { document }
    }

    /// The same of a comparison, a scenario of one class without questions of its own.
    pub fn comparison_document(
        &self,
        scenario: &Scenario,
        command: String,
        has_files: bool,
    ) -> LabDocument {
        let sampled = self.sampled(scenario);
        let document = comparison_document(scenario, &self.runs, &sampled, command);
        if has_files { self.with_files(document) } else { document }
    }

    fn sampled(&self, scenario: &Scenario) -> Vec<SampledCell<'_>> {
        let shown = scenario.series_seeds.first();
        let sampled = self.series.iter().filter(|(_, seed, _)| Some(seed) == shown);
        sampled.map(|(cell, _, points)| SampledCell { cell: *cell, points }).collect()
    }

    fn with_files(&self, mut document: LabDocument) -> LabDocument {
        let file = |(name, holds): (&str, &str)| DataFile {
            name: name.to_owned(),
            holds: holds.to_owned(),
        };
        document.files = CONTENTS.map(file).into();
        if self.runs.iter().any(|run| !run.commands.is_empty()) {
            document.files.push(file((COMMAND_FILES, "what programs printed")));
        }
        document
    }

    /// Output of programs: file names and contents. Cells are counted from 1.
    pub fn command_files(&self) -> Vec<(String, &str)> {
        let name = |run: &RunOutcome, command: &CommandOutcome| {
            let class = |flow: &&FlowRecord| flow.flow == command.flow;
            let group = run.flows.iter().find(class).map_or("", |flow| flow.group.as_str());
            let before = run.flows.iter().filter(|flow| flow.group == group);
            let nth = before.filter(|flow| flow.flow <= command.flow).count();
            let side = if command.is_server { "server" } else { "client" };
            let (cell, seed) = (run.cell + 1, run.seed);
            format!("cell-{cell:04}-seed-{seed}-{}-{nth}-{side}.txt", plain(group))
        };
        let each = self.runs.iter().flat_map(|run| run.commands.iter().map(move |one| (run, one)));
        each.map(|(run, command)| (name(run, command), command.output.as_str())).collect()
    }
}

/// A class name as part of a file name.
fn plain(name: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() || c == '-' { c } else { '_' };
    name.chars().map(plain).collect()
}

/// The value of each axis in a cell.
pub(super) fn values(scenario: &Scenario, cell: usize) -> Vec<String> {
    let point = scenario.cells.get(cell).map_or(&[][..], |cell| &cell.point);
    let values = scenario.axes.iter().zip(point);
    values.map(|(axis, at)| axis.values.get(*at).cloned().unwrap_or_default()).collect()
}

/// The values that define a cell: `path.loss=1%, flow.main.cc=cubic`; empty if there is one cell.
pub fn cell_name(scenario: &Scenario, cell: usize) -> String {
    let values = scenario.axes.iter().zip(values(scenario, cell));
    let named = values.map(|(axis, value)| format!("{}={value}", axis.key));
    named.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering};

    use uncork_flow::{ObjectRow, read_flows, read_objects, read_series};

    use super::*;
    use crate::Engine;
    use crate::sweep::{Item, items, run_items};

    /// Two cells of two runs.
    fn scenario() -> Scenario {
        let text = r#"
            title = "Two"
            [run]
            seeds = 2
            first_seed = 5
            sample = "10ms"
            [path]
            rate = "20mbit"
            rtt = "20ms"
            [flow.main]
            transfer = "50kB"
            cc = "cubic"
            [matrix]
            "flow.main.cc" = ["cubic", "bbr3"]
        "#;
        Scenario::parse("two", text, &[], &BTreeMap::new()).unwrap()
    }

    fn run(scenario: &Scenario, jobs: usize) -> Vec<FinishedRun> {
        let stop = AtomicBool::new(false);
        run_items((scenario, Engine::Sim), &items(scenario), jobs, &stop, &|_, _| {}).unwrap()
    }

    #[test]
    fn runs_do_not_depend_on_threads_and_are_all_reported() {
        let scenario = scenario();
        let reported = Mutex::new(Vec::new());
        let stop = AtomicBool::new(false);
        let of = (&scenario, Engine::Sim);
        let runs = run_items(of, &items(&scenario), 2, &stop, &|run, progress| {
            reported.lock().unwrap().push((run.item(), progress));
        })
        .unwrap();
        assert_eq!(run(&scenario, 1), runs);
        let item = |cell, seed| Item { cell, seed };
        let all = [item(0, 5), item(0, 6), item(1, 5), item(1, 6)];
        assert_eq!(runs.iter().map(FinishedRun::item).collect::<Vec<_>>(), all);
        let mut reported = reported.into_inner().unwrap();
        let packets = runs.iter().map(|run| run.outcome.packets).sum();
        assert_eq!(reported[3].1, crate::Progress { done: 4, total: 4, packets });
        reported.sort_unstable_by_key(|(item, _)| *item);
        assert_eq!(reported.iter().map(|(item, _)| *item).collect::<Vec<_>>(), all);
    }

    #[test]
    fn stop_lets_the_current_run_finish() {
        let scenario = scenario();
        let stop = AtomicBool::new(false);
        let of = (&scenario, Engine::Sim);
        let runs = run_items(of, &items(&scenario), 1, &stop, &|run, _| {
            stop.store(run.outcome.seed == 6, Ordering::Relaxed);
        })
        .unwrap();
        assert_eq!(runs[..], run(&scenario, 1)[..2]);
    }

    #[test]
    fn files_do_not_depend_on_the_order_of_runs() {
        let scenario = scenario();
        let runs = run(&scenario, 1);
        let reversed: Vec<FinishedRun> = runs.iter().rev().cloned().collect();
        let files = |runs: Vec<FinishedRun>| {
            let results = SweepResults::new(runs);
            let document = results.document(&scenario, "uncork".to_owned(), true);
            document.check().unwrap();
            results.files(&scenario, &document).unwrap()
        };
        let all = files(runs.clone());
        assert!(all == files(reversed));
        let [text, html, json, csv, ..] = all;
        assert_eq!(text, scenario.text.clone().into_bytes());
        assert!(html.starts_with(b"<!DOCTYPE html>") && json.starts_with(b"{"));
        assert!(csv.starts_with(b"flow.main.cc,class,cc,"));
    }

    #[test]
    fn tables_have_every_flow_object_and_point_with_its_cell() {
        let mut scenario = scenario();
        let runs = run(&scenario, 1);
        let document = SweepResults::new(runs.clone());
        let document = document.document(&scenario, String::new(), true);
        // The controller always has its own column; the axis must appear under its own name.
        scenario.axes[0].values = vec!["one".into(), "two".into()];
        let results = SweepResults::new(runs.clone());
        let [.., flows, objects, series] = results.files(&scenario, &document).unwrap();
        for table in [&flows, &objects, &series] {
            let holds = |word: &[u8]| table.windows(word.len()).any(|bytes| bytes == word);
            assert!(holds(b"flow.main.cc") && holds(b"one") && holds(b"two"));
        }

        let flows = read_flows(flows).unwrap();
        let reported: Vec<(&str, &str, u64)> =
            flows.iter().map(|flow| (flow.group.as_str(), flow.cc.as_str(), flow.seed)).collect();
        let row = |cc, seed| ("main", cc, seed);
        assert_eq!(reported, [row("cubic", 5), row("cubic", 6), row("bbr3", 5), row("bbr3", 6)]);

        let objects = read_objects(objects).unwrap();
        let times = |object: &ObjectRow| (object.object.size_bytes, object.object.completion_ns);
        let expected = flows.iter().map(|flow| (50_000, flow.completion_ns));
        assert_eq!(objects.iter().map(times).collect::<Vec<_>>(), expected.collect::<Vec<_>>());

        let series = read_series(series).unwrap();
        let points = |cc: &str| {
            series
                .iter()
                .filter(|row| (row.group.as_str(), row.cc.as_str()) == ("main", cc))
                .count()
        };
        assert_eq!(points("cubic"), runs[0].series.len());
        assert_eq!(points("bbr3"), runs[2].series.len());
        assert!(runs[0].series.len() > 3 && runs[1].series.is_empty());
        assert!(series.iter().all(|row| row.seed == 5));
    }

    #[test]
    fn requests_and_transfers_are_objects() {
        let text = r#"
            title = "Both"
            [run]
            end = "10s"
            seeds = 1
            [path]
            rate = "20mbit"
            rtt = "20ms"
            [flow.pages]
            cc = "cubic"
            requests = { size = "10kB", count = 3 }
            [flow.file]
            cc = "cubic"
            transfer = "20kB"
            [flow.noise]
            cc = "cubic"
            bulk = "1s"
        "#;
        let scenario = Scenario::parse("both", text, &[], &BTreeMap::new()).unwrap();
        let runs = run(&scenario, 1);
        let results = SweepResults::new(runs);
        let document = results.document(&scenario, String::new(), true);
        let [.., objects, _] = results.files(&scenario, &document).unwrap();
        let objects = read_objects(objects).unwrap();
        let reported: Vec<(&str, u64)> =
            objects.iter().map(|row| (row.group.as_str(), row.object.size_bytes)).collect();
        let page = ("pages", 10_000);
        assert_eq!(reported, [page, page, page, ("file", 20_000)]);
        assert!(objects.iter().all(|row| row.object.completion_ns.is_some()));
    }

    #[test]
    fn output_of_commands_is_named_by_cell_seed_and_flow() {
        let flow =
            |flow| FlowRecord { flow, group: "a b".into(), ..crate::testing::record(0, None, 1) };
        let printed = |flow, is_server, output: &str| CommandOutcome {
            flow,
            is_server,
            output: output.into(),
            problem: None,
        };
        let outcome = RunOutcome {
            cell: 2,
            seed: 7,
            flows: vec![flow(0), flow(1)],
            requests: vec![],
            clients: vec![0, 1],
            packets: 0,
            doubts: vec![],
            commands: vec![printed(0, true, "one"), printed(1, false, "two")],
        };
        let results = SweepResults::new(vec![FinishedRun { outcome, series: vec![] }]);
        let expected = [
            ("cell-0003-seed-7-a_b-1-server.txt".to_owned(), "one"),
            ("cell-0003-seed-7-a_b-2-client.txt".to_owned(), "two"),
        ];
        assert_eq!(results.command_files(), expected);
    }

    #[test]
    fn single_cell_has_no_name() {
        assert_eq!(cell_name(&Scenario::empty("none"), 0), "");
    }
}
