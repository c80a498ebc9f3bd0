//! Results of a scenario. The JSON form of [`LabDocument`] is a contract: fields may be added
//! within one schema number, never renamed, moved or given another meaning. It holds all data of its
//! tables and figures. Floats are finite.

use serde::{Deserialize, Serialize};

use super::answer::Answer;
use super::figure::Figure;
use super::published::Published;

/// Results of a scenario: all cells of its matrix, all seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LabDocument {
    /// Name and version of the form.
    #[cfg_attr(test, schemars(extend("const" = Self::SCHEMA)))]
    pub schema: String,
    /// Version of uncork.
    pub version: String,
    /// Name of the scenario on the command line.
    pub name: String,
    /// Title of the scenario.
    pub title: String,
    /// Purpose of the scenario. Blank lines separate paragraphs.
    pub about: String,
    /// Command that repeats the run.
    pub command: String,
    /// First seed of each cell; the others count up from it.
    pub first_seed: u64,
    /// Number of seeds, which is the number of runs of each cell.
    pub seeds: u64,
    /// The scenario as TOML, with all defaults.
    pub scenario: String,
    /// Kind of the intervals: `95 % intervals over seeds`.
    pub intervals: String,
    /// Comparison of the controllers for each class.
    #[serde(default)]
    pub answers: Vec<Answer>,
    /// Choices of controllers without an answer, because the number of flows differs, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_compared: Vec<String>,
    /// Thresholds of the scenario.
    pub thresholds: Vec<Threshold>,
    /// Axes of the matrix; empty if there is one cell.
    pub axes: Vec<MatrixAxis>,
    /// Cells of the matrix.
    pub cells: Vec<Cell>,
    /// Comparison with published results.
    pub published: Vec<Published>,
    /// Assumptions of the scenario, one sentence each.
    pub assumptions: Vec<String>,
    /// Reasons to distrust the results, one sentence each.
    #[serde(default)]
    pub doubts: Vec<String>,
    /// Figures in display order.
    pub figures: Vec<Figure>,
    /// Data files next to this document.
    pub files: Vec<DataFile>,
    /// Engine that ran the scenario.
    pub engine: LabEngine,
}

impl LabDocument {
    /// Name and major version of the JSON form.
    pub const SCHEMA: &str = "uncork.lab/2";
}

/// A threshold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Threshold {
    /// Text of the threshold: `completion_p50 < 5 s`.
    pub text: String,
    /// Class; several, with commas, if their flows count together.
    pub class: String,
    /// Controller or controllers of the class.
    pub cc: String,
    /// Cell, without the controller's axis; empty if there is one cell.
    pub cell: String,
    /// Measured value; null if there was nothing to measure, which is a failure.
    pub measured: Option<f64>,
    /// Lower end of the 95 % interval; null without interval.
    #[serde(default)]
    pub low: Option<f64>,
    /// Upper end.
    #[serde(default)]
    pub high: Option<f64>,
    /// Bound.
    pub bound: f64,
    /// Unit of `measured`, `low`, `high` and `bound`.
    pub unit: String,
    /// Whether the threshold was met.
    pub passed: bool,
}

impl Threshold {
    /// Whether the result is undecided: the bound is within the interval.
    pub fn is_open(&self) -> bool {
        self.low.is_some_and(|low| low < self.bound)
            && self.high.is_some_and(|high| self.bound < high)
    }
}

/// An axis of the matrix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MatrixAxis {
    /// Key in the scenario: `path.loss`.
    pub key: String,
    /// Name in tables and figures: `loss`.
    pub name: String,
    /// Values with units: `0.1 %`.
    pub values: Vec<String>,
    /// The values as numbers in one unit; one column for each key if the axis
    /// varies several.
    #[serde(default)]
    pub columns: Vec<MatrixColumn>,
}

/// Values of an axis as numbers or text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MatrixColumn {
    /// Key with the unit: `path.loss_fraction`, `path.rtt_ns`.
    pub name: String,
    /// One for each value of the axis.
    pub values: Vec<ColumnValue>,
}

/// A value of a column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum ColumnValue {
    /// A number in the column's unit; null if the value is not a number.
    Number(Option<f64>),
    /// A text.
    Text(String),
}

impl MatrixAxis {
    /// Heading: `loss`; `cc of large` if it sets the controller of one class.
    pub fn title(&self) -> String {
        axis_title(&self.key, &self.name)
    }
}

/// Whether the axis at `key` varies controllers only.
pub fn chooses_controllers(key: &str) -> bool {
    key.split(',').all(|place| place.rsplit('.').next().is_some_and(|last| last.trim() == "cc"))
}

/// [`MatrixAxis::title`] of the axis at `key` with the name `name`.
pub fn axis_title(key: &str, name: &str) -> String {
    let class = key.strip_prefix("flow.").and_then(|rest| rest.strip_suffix(".cc"));
    match class.filter(|class| name == "cc" && !class.contains(',')) {
        Some(class) => format!("cc of {class}"),
        None => name.to_owned(),
    }
}

/// A cell of the matrix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Cell {
    /// Index of the value on each axis, in the order of `axes`.
    pub point: Vec<usize>,
    /// Results of each class.
    pub classes: Vec<ClassResult>,
}

/// Results of a class in a cell, over all seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ClassResult {
    /// Name of the class: `download`.
    pub class: String,
    /// Controller.
    pub cc: String,
    /// Flows that started.
    pub flows: u64,
    /// Flows that finished.
    pub finished: u64,
    /// Whether the flows last until the end of the run, so none can finish.
    #[serde(default)]
    pub endless: bool,
    /// Measured metrics.
    pub metrics: Vec<Metric>,
}

/// A metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Metric {
    /// Name: `completion_p50`. Neighbours that differ only after the last `_`, by a
    /// percentile, `mean`, `median`, `min` or `max`, share a heading.
    pub name: String,
    /// Unit. `bit/s`, `B` and `s` are displayed in suitable multiples, all
    /// others as they are.
    pub unit: String,
    /// Value with interval.
    pub estimate: Estimate,
}

/// A value with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Estimate {
    /// Value.
    pub value: f64,
    /// Lower end of the interval; null if there are too few samples.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
    /// Number of samples.
    pub n: u64,
}

/// A data file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DataFile {
    /// File name.
    pub name: String,
    /// Contents.
    pub holds: String,
}

/// The engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LabEngine {
    /// Name: `sim`, `quic-sim`, `netns`, `bpf`.
    pub name: String,
    /// Packets sent, over all cells and seeds.
    pub packets: u64,
}
