//! What all runs of a scenario amount to, and the files that hold it.

use std::collections::BTreeMap;

use uncork_flow::{FileError, FlowRecord, RunSeries, SeriesPoint, write_flows, write_series};
use uncork_report::lab::{DataFile, LabDocument, lab_csv, lab_html};

use super::run::FinishedRun;
use crate::evaluate::{RunCost, RunOutcome, SampledCell, document};
use crate::scenario::Scenario;

/// Names of the files, in the order of [`SweepResults::files`].
pub const SWEEP_FILES: [&str; 6] = [
    "scenario.toml",
    "report.html",
    "summary.json",
    "cells.csv",
    "flows.parquet",
    "series.parquet",
];

/// What files beside the report hold.
const CONTENTS: [(&str, &str); 5] = [
    ("scenario.toml", "the scenario as it was run"),
    ("summary.json", "this report's data as JSON"),
    ("cells.csv", "the table of results, a line for each metric of each class and cell"),
    ("flows.parquet", "a row for each flow of each run"),
    ("series.parquet", "the inside of the flows of each cell's first seed, where it was asked for"),
];

/// All runs of a scenario, by cell and seed.
#[derive(Clone, Debug)]
pub struct SweepResults {
    runs: Vec<RunOutcome>,
    /// The inside of some runs: cell, seed, points.
    series: Vec<(usize, u64, Vec<SeriesPoint>)>,
}

impl SweepResults {
    /// Those of `runs`, whatever their order.
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

    /// The result document. `command` repeats the runs; with `has_files` it tells of the files that
    /// are written beside it.
    pub fn document(
        &self,
        scenario: &Scenario,
        command: String,
        has_files: bool,
        cost: RunCost,
    ) -> LabDocument {
        let sampled = self.series.iter();
        let sampled = sampled.map(|(cell, _, points)| SampledCell { cell: *cell, points });
        let sampled: Vec<SampledCell<'_>> = sampled.collect();
        let mut document = document(scenario, &self.runs, &sampled, command, cost);
        if has_files {
            let file = |(name, holds): (&str, &str)| DataFile {
                name: name.to_owned(),
                holds: holds.to_owned(),
            };
            document.files = CONTENTS.map(file).into();
        }
        document
    }

    /// The contents of [`SWEEP_FILES`].
    pub fn files(
        &self,
        scenario: &Scenario,
        document: &LabDocument,
    ) -> Result<[Vec<u8>; 6], FileError> {
        let (mut flows, mut series) = (Vec::new(), Vec::new());
        write_flows(&mut flows, &self.records(scenario))?;
        self.write_series(scenario, &mut series)?;
        let texts =
            [scenario.text.clone(), lab_html(document), document.to_json(), lab_csv(document)];
        let [scenario, html, json, csv] = texts.map(String::into_bytes);
        Ok([scenario, html, json, csv, flows, series])
    }

    /// The record of every flow. Its group says of which cell it is, too.
    fn records(&self, scenario: &Scenario) -> Vec<FlowRecord> {
        let records = self.runs.iter().flat_map(|run| {
            let cell = cell_name(scenario, run.cell);
            run.flows
                .iter()
                .map(move |flow| FlowRecord { group: group(&flow.group, &cell), ..flow.clone() })
        });
        records.collect()
    }

    fn write_series(&self, scenario: &Scenario, out: &mut Vec<u8>) -> Result<(), FileError> {
        let flows: BTreeMap<(usize, u64), &[FlowRecord]> =
            self.runs.iter().map(|run| ((run.cell, run.seed), run.flows.as_slice())).collect();
        let names: Vec<String> =
            self.series.iter().map(|(cell, ..)| cell_name(scenario, *cell)).collect();
        let runs = names.iter().zip(&self.series).map(|(name, (cell, seed, points))| {
            let flows = flows.get(&(*cell, *seed)).copied().unwrap_or_default();
            RunSeries {
                group: name,
                seed: *seed,
                cc_of_flow: flows.iter().map(|flow| flow.cc.as_str()).collect(),
                points,
            }
        });
        write_series(out, &runs.collect::<Vec<_>>())
    }
}

/// The values that make a cell: `path.loss=1%, flow.main.cc=cubic`; nothing where there is one cell.
pub fn cell_name(scenario: &Scenario, cell: usize) -> String {
    let point = scenario.cells.get(cell).map_or(&[][..], |cell| &cell.point);
    let axes = scenario.axes.iter().zip(point);
    let value =
        axes.filter_map(|(axis, at)| Some(format!("{}={}", axis.key, axis.values.get(*at)?)));
    value.collect::<Vec<_>>().join(", ")
}

fn group(class: &str, cell: &str) -> String {
    if cell.is_empty() { class.to_owned() } else { format!("{class}: {cell}") }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering};

    use uncork_flow::{read_flows, read_series};

    use super::*;
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
        run_items(scenario, &items(scenario), jobs, &AtomicBool::new(false), &|_, _| {})
    }

    #[test]
    fn runs_are_the_same_on_any_number_of_threads_and_all_are_told_of() {
        let scenario = scenario();
        let told = Mutex::new(Vec::new());
        let stop = AtomicBool::new(false);
        let runs = run_items(&scenario, &items(&scenario), 2, &stop, &|run, progress| {
            told.lock().unwrap().push((run.item(), progress));
        });
        assert_eq!(run(&scenario, 1), runs);
        let item = |cell, seed| Item { cell, seed };
        let all = [item(0, 5), item(0, 6), item(1, 5), item(1, 6)];
        assert_eq!(runs.iter().map(FinishedRun::item).collect::<Vec<_>>(), all);
        let mut told = told.into_inner().unwrap();
        let packets = runs.iter().map(|run| run.outcome.packets).sum();
        assert_eq!(told[3].1, crate::Progress { done: 4, total: 4, packets });
        told.sort_unstable_by_key(|(item, _)| *item);
        assert_eq!(told.iter().map(|(item, _)| *item).collect::<Vec<_>>(), all);
    }

    #[test]
    fn a_stop_lets_the_run_under_way_finish() {
        let scenario = scenario();
        let stop = AtomicBool::new(false);
        let runs = run_items(&scenario, &items(&scenario), 1, &stop, &|run, _| {
            stop.store(run.outcome.seed == 6, Ordering::Relaxed);
        });
        assert_eq!(runs[..], run(&scenario, 1)[..2]);
    }

    #[test]
    fn the_files_hold_what_was_run_in_whatever_order() {
        let scenario = scenario();
        let runs = run(&scenario, 1);
        let reversed: Vec<FinishedRun> = runs.iter().rev().cloned().collect();
        let files = |runs: Vec<FinishedRun>| {
            let results = SweepResults::new(runs);
            let document =
                results.document(&scenario, "uncork".to_owned(), true, RunCost::default());
            document.check().unwrap();
            results.files(&scenario, &document).unwrap()
        };
        let all = files(runs.clone());
        assert!(all == files(reversed));
        let [text, html, json, csv, flows, series] = all;
        assert_eq!(text, scenario.text.clone().into_bytes());
        assert!(html.starts_with(b"<!DOCTYPE html>") && json.starts_with(b"{"));
        assert!(csv.starts_with(b"flow.main.cc,class,cc,"));

        let flows = read_flows(flows).unwrap();
        let told: Vec<(&str, u64)> =
            flows.iter().map(|flow| (flow.group.as_str(), flow.seed)).collect();
        let (cubic, bbr3) = ("main: flow.main.cc=cubic", "main: flow.main.cc=bbr3");
        assert_eq!(told, [(cubic, 5), (cubic, 6), (bbr3, 5), (bbr3, 6)]);
        let series = read_series(series).unwrap();
        let points = |group: &str, cc: &str| {
            series.iter().filter(|row| (row.group.as_str(), row.cc.as_str()) == (group, cc)).count()
        };
        assert_eq!(points("flow.main.cc=cubic", "cubic"), runs[0].series.len());
        assert_eq!(points("flow.main.cc=bbr3", "bbr3"), runs[2].series.len());
        assert!(runs[0].series.len() > 3 && runs[1].series.is_empty());
        assert!(series.iter().all(|row| row.seed == 5));
    }

    #[test]
    fn a_scenario_of_one_cell_needs_no_name_for_it() {
        assert_eq!(group("main", ""), "main");
        assert_eq!(cell_name(&Scenario::empty("none"), 0), "");
    }
}
