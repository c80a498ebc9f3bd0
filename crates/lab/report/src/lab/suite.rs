//! Results of a suite of scenarios. The JSON form of [`SuiteDocument`] is a contract like
//! that of [`LabDocument`].

use serde::{Deserialize, Serialize};

use super::document::{LabDocument, LabEngine, Threshold};
use crate::words;

/// Results of a suite of scenarios.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SuiteDocument {
    /// Name and version of the form.
    #[cfg_attr(test, schemars(extend("const" = Self::SCHEMA)))]
    pub schema: String,
    /// Version of uncork.
    pub version: String,
    /// Name of the suite on the command line.
    pub name: String,
    /// Title of the suite.
    pub title: String,
    /// Purpose of the suite. Blank lines separate paragraphs.
    pub about: String,
    /// Command that repeats the run.
    pub command: String,
    /// The suite's file.
    pub suite: String,
    /// Criteria that no scenario can test, with the reason.
    pub not_judged: Vec<String>,
    /// Results of each scenario, in the order of the suite.
    #[cfg_attr(test, schemars(with = "Vec<serde_json::Value>", extend("items" = {"$ref": "lab-2.json"})))]
    pub scenarios: Vec<LabDocument>,
    /// Engine that ran all scenarios.
    #[cfg_attr(test, schemars(with = "serde_json::Value", extend("$ref" = "lab-2.json#/$defs/LabEngine")))]
    pub engine: LabEngine,
}

impl SuiteDocument {
    /// Name and major version of the JSON form.
    pub const SCHEMA: &str = "uncork.suite/2";

    /// All thresholds of all scenarios.
    pub fn thresholds(&self) -> impl Iterator<Item = &Threshold> {
        self.scenarios.iter().flat_map(|scenario| &scenario.thresholds)
    }

    /// `17 of 210 thresholds missed, in 5 of 18 scenarios.`
    pub(super) fn verdict(&self) -> String {
        let all = self.scenarios.len();
        let scenarios = words::counted(all as u64, "scenario");
        let thresholds = words::counted(self.thresholds().count() as u64, "threshold");
        match self.scenarios.iter().filter(|scenario| !missed(scenario).is_empty()).count() {
            0 => format!("{thresholds} in {scenarios}: all met."),
            some => {
                let missed = self.thresholds().filter(|threshold| !threshold.passed).count();
                format!("{missed} of {thresholds} missed, in {some} of {scenarios}.")
            }
        }
    }

    /// Runs of all scenarios.
    pub(super) fn runs(&self) -> u64 {
        self.scenarios.iter().map(|scenario| scenario.cells.len() as u64 * scenario.seeds).sum()
    }
}

/// The thresholds a scenario missed.
pub(super) fn missed(scenario: &LabDocument) -> Vec<&Threshold> {
    scenario.thresholds.iter().filter(|threshold| !threshold.passed).collect()
}

/// `2 of 7 missed`, `all 7 met`.
pub(super) fn score(scenario: &LabDocument) -> String {
    match (missed(scenario).len(), scenario.thresholds.len()) {
        (_, 0) => "no thresholds".to_owned(),
        (0, 1) => "met".to_owned(),
        (0, 2) => "both met".to_owned(),
        (0, all) => format!("all {all} met"),
        (_, 1) => "missed".to_owned(),
        (missed, all) => format!("{missed} of {all} missed"),
    }
}

/// How many of a scenario's thresholds each controller missed: `7 by bbr1, 4 by bbr3 (class main)`.
pub(super) fn who_missed(scenario: &LabDocument) -> String {
    let mut classes: Vec<(&str, Vec<(&str, u64)>)> = Vec::new();
    for Threshold { class, cc, .. } in missed(scenario) {
        let known = classes.iter().position(|(known, _)| known == class);
        let at = known.unwrap_or_else(|| {
            classes.push((class, Vec::new()));
            classes.len() - 1
        });
        let ccs = &mut classes[at].1;
        match ccs.iter_mut().find(|(known, _)| known == cc) {
            Some((_, count)) => *count += 1,
            None => ccs.push((cc, 1)),
        }
    }
    let by = |(class, ccs): &(&str, Vec<(&str, u64)>)| {
        let ccs: Vec<String> = ccs.iter().map(|(cc, count)| format!("{count} by {cc}")).collect();
        format!("{} (class {class})", ccs.join(", "))
    };
    classes.iter().map(by).collect::<Vec<_>>().join("; ")
}
