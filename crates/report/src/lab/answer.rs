//! Which controller serves a population better, by how much, and at what price: the data.

use serde::{Deserialize, Serialize};

use super::document::Estimate;

/// One choice beside the baseline, for one population in one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The population: a class of the scenario.
    pub class: String,
    /// Index of the cell in [`LabDocument::cells`](super::LabDocument::cells).
    pub cell: usize,
    /// What tells the cell from others, apart from the choice; empty where nothing does.
    pub place: String,
    /// A controller, or the name of a value of the matrix that sets controllers.
    pub choice: String,
    /// What it is compared with: the first of the choices.
    pub baseline: String,
    /// The classes that have the choice, if the population is none of them; else empty.
    pub of: String,
    /// What the population cares for: `completion_p50`.
    pub metric: String,
    /// Unit of `value` and `baseline_value`.
    pub unit: String,
    /// Whether less of it is better.
    pub less_is_better: bool,
    /// What the choice gives; `None` where nothing could be measured.
    pub value: Option<f64>,
    /// What the baseline gives.
    pub baseline_value: Option<f64>,
    /// `value` over `baseline_value`, with its 95 % interval.
    pub ratio: Option<Estimate>,
    /// What that means for the population.
    pub kind: AnswerKind,
    /// Transfers of the choice.
    pub transfers: Transfers,
    /// Transfers of the baseline.
    pub baseline_transfers: Transfers,
    /// What either side pays, told or not.
    pub prices: Vec<Price>,
}

/// How a choice compares with the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerKind {
    /// It serves the population better.
    Better,
    /// It serves the population worse.
    Worse,
    /// Both serve it alike, within 1 %.
    Alike,
    /// The interval of the ratio leaves open which is better.
    Open,
    /// There is nothing to compare.
    Unknown,
}

/// Transfers that have an end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transfers {
    /// How many began.
    pub all: u64,
    /// How many finished.
    pub finished: u64,
}

/// What a choice costs beside what the baseline costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Price {
    /// Another class that shares links with the population; empty where it is the population itself.
    pub class: String,
    /// `retransmitted_mean`, `queue_delay_p95`, `jain_mean`, or what the other class cares for.
    pub metric: String,
    /// Unit of both values.
    pub unit: String,
    /// Whether less of it is better.
    pub less_is_better: bool,
    /// With the choice.
    pub value: f64,
    /// With the baseline.
    pub baseline_value: f64,
    /// Who pays so much more than the other that it is worth a word.
    pub payer: Option<Payer>,
}

/// One of the two sides of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Payer {
    /// The choice.
    Choice,
    /// The baseline.
    Baseline,
}
