//! What a laboratory run found. The JSON form of [`LabDocument`] is a contract: fields may be added
//! within one schema number, never renamed, moved or given another meaning. It holds all that its
//! tables and figures show. Floats are finite: JSON knows no others.

use serde::{Deserialize, Serialize};

use super::answer::Answer;
use super::figure::Figure;

/// The outcome of running one scenario over all points of its matrix and all its seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabDocument {
    /// Always [`LabDocument::SCHEMA`].
    pub schema: String,
    /// Version of uncork that wrote it.
    pub version: String,
    /// The scenario's name, as the command line takes it.
    pub name: String,
    /// The scenario's name for people.
    pub title: String,
    /// What it asks and why; empty lines part paragraphs.
    pub about: String,
    /// The command that repeats it.
    pub command: String,
    /// Seed of the first run of each cell; the others follow it one by one.
    pub first_seed: u64,
    /// Runs of each cell.
    pub seeds: u64,
    /// The scenario as it was run: TOML with every default written out.
    pub scenario: String,
    /// What the lower and upper ends of estimates are: `95 % intervals over seeds`.
    pub intervals: String,
    /// Which controller serves each population better, by how much, and at what price.
    #[serde(default)]
    pub answers: Vec<Answer>,
    /// What the scenario demands of its results, and whether it got it.
    pub thresholds: Vec<Threshold>,
    /// What the cells differ in; empty where there is a single cell.
    pub axes: Vec<MatrixAxis>,
    /// The points of the matrix.
    pub cells: Vec<Cell>,
    /// The results beside those of others.
    pub published: Vec<Published>,
    /// What the scenario takes for granted, a sentence each.
    pub assumptions: Vec<String>,
    /// Why the results may be doubted, a sentence each.
    #[serde(default)]
    pub doubts: Vec<String>,
    /// The pictures, in the order to show them.
    pub figures: Vec<Figure>,
    /// Files beside this document with data that are too many for it.
    pub files: Vec<DataFile>,
    /// What played the runs. How long that took is not told here: equal runs give equal documents.
    pub engine: LabEngine,
}

impl LabDocument {
    /// Name and major version of the JSON form.
    pub const SCHEMA: &str = "uncork.lab/2";
}

/// A demand on one figure of the results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Threshold {
    /// The demand as the scenario has it: `completion_p50 < 5 s`.
    pub text: String,
    /// The class it was tested on; several, with commas, where their flows count together.
    pub class: String,
    /// Its controller, or controllers.
    pub cc: String,
    /// The cell, as far as the controller does not tell it; empty where there is but one.
    pub cell: String,
    /// What was measured; `None` where there was nothing to measure, which is a failure.
    pub measured: Option<f64>,
    /// Lower end of its 95 % interval; `None` where there is none.
    #[serde(default)]
    pub low: Option<f64>,
    /// Upper end.
    #[serde(default)]
    pub high: Option<f64>,
    /// What it was held against.
    pub bound: f64,
    /// Unit of both.
    pub unit: String,
    /// Whether the demand was met.
    pub passed: bool,
}

impl Threshold {
    /// Whether what was measured could as well lie on the other side of the bound: the bound is within
    /// its interval.
    pub fn is_open(&self) -> bool {
        self.low.is_some_and(|low| low < self.bound)
            && self.high.is_some_and(|high| self.bound < high)
    }
}

/// One dimension of the matrix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MatrixAxis {
    /// Where it varies, as the scenario says it: `path.loss`.
    pub key: String,
    /// What it is called in tables and figures: `loss`.
    pub name: String,
    /// What it is set to, one after the other, with units: `0.1 %`.
    pub values: Vec<String>,
    /// The values for computing with: numbers in one unit, and each place for itself where the axis
    /// varies several.
    #[serde(default)]
    pub columns: Vec<MatrixColumn>,
}

/// Values of an axis in a form that programs read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MatrixColumn {
    /// The place, with the unit of numbers: `path.loss_fraction`, `path.rtt_ns`.
    pub name: String,
    /// For each of the axis's values.
    pub values: Vec<ColumnValue>,
}

/// A value of a column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ColumnValue {
    /// A number in the column's unit; null where the value is none.
    Number(Option<f64>),
    /// A text.
    Text(String),
}

impl MatrixAxis {
    /// Whether it varies nothing but controllers.
    pub(super) fn chooses_controllers(&self) -> bool {
        self.key.split(',').all(|place| place.trim().rsplit('.').next() == Some("cc"))
    }

    /// Heading of its values: `loss`; `cc of large` where it chooses the controller of one class.
    pub fn title(&self) -> String {
        axis_title(&self.key, &self.name)
    }
}

/// [`MatrixAxis::title`] of the axis at `key` with the name `name`.
pub fn axis_title(key: &str, name: &str) -> String {
    let class = key.strip_prefix("flow.").and_then(|rest| rest.strip_suffix(".cc"));
    match class.filter(|class| name == "cc" && !class.contains(',')) {
        Some(class) => format!("cc of {class}"),
        None => name.to_owned(),
    }
}

/// One point of the matrix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Index of its value on each axis, in the order of [`LabDocument::axes`].
    pub point: Vec<usize>,
    /// Its traffic, by class.
    pub classes: Vec<ClassResult>,
}

/// The flows of one class in one cell, over all seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassResult {
    /// Name of the class: `download`.
    pub class: String,
    /// Its controller.
    pub cc: String,
    /// Flows that began.
    pub flows: u64,
    /// Flows that did all they had to do.
    pub finished: u64,
    /// Whether its flows go on until the run ends, so that none can finish.
    #[serde(default)]
    pub endless: bool,
    /// What was measured; a metric that nothing could be said about is absent.
    pub metrics: Vec<Metric>,
}

/// One measured quantity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// Its name: `completion_p50`. Names that differ only in what follows the last `_`, if that is a
    /// percentile, `mean`, `median`, `min` or `max`, share a heading when they are neighbours.
    pub name: String,
    /// Its unit. Values in `bit/s`, `B` and `s` are shown in the multiples that read best, all
    /// others as they are.
    pub unit: String,
    /// What it came to.
    pub estimate: Estimate,
}

/// A figure and how sure it is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The figure.
    pub value: f64,
    /// Lower end of its interval; `None` where there are too few samples for one.
    pub low: Option<f64>,
    /// Upper end of its interval.
    pub high: Option<f64>,
    /// Samples behind it.
    pub n: u64,
}

/// A result beside the one that somebody published.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// What is compared.
    pub what: String,
    /// What the source says.
    pub published: String,
    /// What came out here.
    pub measured: String,
    /// Whether they agree; `None` where that cannot be said.
    pub agrees: Option<bool>,
    /// Where it was published.
    pub source: String,
    /// Why they differ, or what to mind; may be empty.
    pub note: String,
}

/// A file beside the document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataFile {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub holds: String,
}

/// What played the runs of a scenario.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabEngine {
    /// What ran the flows: `sim`, `quic-sim`, `netns`.
    pub name: String,
    /// Packets carried, over all cells and seeds.
    pub packets: u64,
}
