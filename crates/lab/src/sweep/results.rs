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
