//! What the scenarios of a suite found together. The JSON form of [`SuiteDocument`] is a contract as
//! that of [`LabDocument`] is.

use serde::{Deserialize, Serialize};

use super::document::{LabDocument, LabEngine, Threshold};
use crate::words;

/// The outcome of running all scenarios of a suite.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SuiteDocument {
    /// Always [`SuiteDocument::SCHEMA`].
    pub schema: String,
    /// Version of uncork that wrote it.
    pub version: String,
    /// The suite's name, as the command line takes it.
    pub name: String,
    /// The suite's name for people.
    pub title: String,
    /// What it asks and why; empty lines part paragraphs.
    pub about: String,
    /// The command that repeats all of it.
    pub command: String,
    /// The suite's file.
    pub suite: String,
    /// What is asked and no scenario can judge, a sentence or two each.
    pub not_judged: Vec<String>,
    /// What each scenario found, in the order of the suite.
    pub scenarios: Vec<LabDocument>,
    /// What played the runs of all scenarios.
    pub engine: LabEngine,
}

impl SuiteDocument {
    /// Name and major version of the JSON form.
    pub const SCHEMA: &str = "uncork.suite/2";

    /// All thresholds of all scenarios.
    pub fn thresholds(&self) -> impl Iterator<Item = &Threshold> {
        self.scenarios.iter().flat_map(|scenario| &scenario.thresholds)
    }

    /// `5 of 18 scenarios failed: 17 of 210 thresholds.`
    pub(super) fn verdict(&self) -> String {
        let all = self.scenarios.len();
        let scenarios = words::counted(all as u64, "scenario");
        let thresholds = words::counted(self.thresholds().count() as u64, "threshold");
        match self.scenarios.iter().filter(|scenario| !failed(scenario).is_empty()).count() {
            0 => format!("Nothing failed: {scenarios} with {thresholds}."),
            some => {
                let missed = self.thresholds().filter(|threshold| !threshold.passed).count();
                format!("{some} of {scenarios} failed: {missed} of {thresholds}.")
            }
        }
    }

    /// Runs of all scenarios.
    pub(super) fn runs(&self) -> u64 {
        self.scenarios.iter().map(|scenario| scenario.cells.len() as u64 * scenario.seeds).sum()
    }
}

/// What a scenario missed.
pub(super) fn failed(scenario: &LabDocument) -> Vec<&Threshold> {
    scenario.thresholds.iter().filter(|threshold| !threshold.passed).collect()
}

/// `2 of 7 failed`, `all 7 met`.
pub(super) fn score(scenario: &LabDocument) -> String {
    match (failed(scenario).len(), scenario.thresholds.len()) {
        (_, 0) => "no thresholds".to_owned(),
        (0, 1) => "met".to_owned(),
        (0, all) => format!("all {all} met"),
        (failed, all) => format!("{failed} of {all} failed"),
    }
}

/// Who missed how many of a scenario's thresholds: `main, bbr1: 7; main, bbr3: 4`.
pub(super) fn who_failed(scenario: &LabDocument) -> String {
    let mut who: Vec<(String, u64)> = Vec::new();
    for Threshold { class, cc, .. } in failed(scenario) {
        let name = format!("{class}, {cc}");
        match who.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => who.push((name, 1)),
        }
    }
    let who = who.into_iter().map(|(name, count)| format!("{name}: {count}"));
    who.collect::<Vec<_>>().join("; ")
}
