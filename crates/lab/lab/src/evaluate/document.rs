//! The result document of a scenario.

use std::collections::BTreeSet;

use uncork_flow::SeriesPoint;
use uncork_report::lab::{LabDocument, LabEngine, MatrixAxis};

use super::answers::{published, thresholds};
use super::comparisons::{add_between_classes, answers};
use super::figures::{described, usual_figures};
use super::outcome::RunOutcome;
use super::results::RunResults;
use super::{marks, starts, tables};
use crate::scenario::Scenario;

/// The time series of a cell's first seed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SampledCell<'a> {
    /// Index of the cell.
    pub cell: usize,
    /// Points of its flows, ordered by time.
    pub points: &'a [SeriesPoint],
}

/// The document of `runs`, which must be sorted by cell and seed. `command` reproduces them.
pub(crate) fn document(
    scenario: &Scenario,
    runs: &[RunOutcome],
    sampled: &[SampledCell<'_>],
    command: String,
) -> LabDocument {
    let results = RunResults::new(scenario, runs);
    let mut document = without_figures(&results, runs, command);
    add_between_classes(&results, &mut document);
    document.thresholds = thresholds(&results);
    document.published = published(&results);
    document.figures = if scenario.figures.is_empty() {
        usual_figures(&results, &document.answers, sampled, &document.command)
    } else {
        described(&results, sampled, &document.command)
    };
    document
}

/// The document of a scenario of one class without questions of its own, as a comparison is.
pub(crate) fn comparison_document(
    scenario: &Scenario,
    runs: &[RunOutcome],
    sampled: &[SampledCell<'_>],
    command: String,
) -> LabDocument {
    let results = RunResults::new(scenario, runs);
    let mut document = without_figures(&results, runs, command);
    document.figures = usual_figures(&results, &document.answers, sampled, &document.command);
    document
}

fn without_figures(results: &RunResults<'_>, runs: &[RunOutcome], command: String) -> LabDocument {
    let scenario = results.scenario;
    let (answers, not_compared) = answers(results);
    let axis = |axis: &crate::scenario::Axis| MatrixAxis {
        key: axis.key.clone(),
        name: axis.name.clone(),
        values: axis.values.clone(),
        columns: axis.columns(),
    };
    LabDocument {
        schema: LabDocument::SCHEMA.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        name: scenario.name.clone(),
        title: scenario.title.clone(),
        about: scenario.about.clone(),
        first_seed: scenario.first_seed,
        seeds: u64::from(scenario.seeds),
        scenario: scenario.text.clone(),
        intervals: "95 % intervals over six or more seeds, or flows with links of their own: \
                    Student's t for means, order statistics for quantiles. A p90 needs 10 samples, \
                    a p99 100."
            .into(),
        thresholds: Vec::new(),
        axes: scenario.axes.iter().map(axis).collect(),
        cells: tables::cells(results),
        published: Vec::new(),
        assumptions: scenario.assumptions.clone(),
        doubts: [
            doubts(runs),
            marks::doubts(results),
            starts::warning(results).into_iter().collect(),
        ]
        .concat(),
        figures: Vec::new(),
        answers,
        not_compared,
        command,
        files: Vec::new(),
        engine: LabEngine {
            name: engines(runs),
            packets: runs.iter().map(|run| run.packets).sum(),
        },
    }
}

/// The engines of `runs`.
fn engines(runs: &[RunOutcome]) -> String {
    let flows = runs.iter().filter_map(|run| run.flows.first());
    let engines: BTreeSet<&str> = flows.map(|flow| flow.engine.as_str()).collect();
    engines.into_iter().collect::<Vec<_>>().join(" and ")
}

/// Reasons to distrust `runs`: how many, and the first reason.
fn doubts(runs: &[RunOutcome]) -> Vec<String> {
    let of_runs = |dead: bool| {
        move |run: &RunOutcome| {
            if run.is_dead() == dead { run.doubts.join("; ") } else { String::new() }
        }
    };
    let failed = |run: &RunOutcome| {
        let problems = run.commands.iter().filter_map(|command| command.problem.as_deref());
        problems.collect::<Vec<_>>().join("; ")
    };
    let doubts = [
        doubt(
            runs,
            ["lost a connection and has no value", "lost connections and have no value"],
            of_runs(true),
        ),
        doubt(
            runs,
            ["was disturbed by this machine", "were disturbed by this machine"],
            of_runs(false),
        ),
        doubt(runs, ["had a command that failed", "had commands that failed"], failed),
    ];
    doubts.into_iter().flatten().collect()
}

/// How many of `runs` have a problem (with singular and plural wording), and the first reason.
fn doubt(
    runs: &[RunOutcome],
    [one, several]: [&str; 2],
    reason: impl Fn(&RunOutcome) -> String,
) -> Option<String> {
    let reasons = runs.iter().map(|run| (run.seed, reason(run)));
    let mut doubtful = reasons.filter(|(_, reason)| !reason.is_empty());
    let (seed, reason) = doubtful.next()?;
    let (count, all) = (1 + doubtful.count(), runs.len());
    let problem = if count == 1 { one } else { several };
    Some(format!("{count} of {all} runs {problem} (seed {seed}, {reason})."))
}
