//! Figures: their data, and nothing of their looks.

use serde::{Deserialize, Serialize};

use crate::table::Align;

/// One picture with what it takes to read and to repeat it. Values are in the units in which they are
/// shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Name for links, unique in its document.
    pub id: String,
    /// Heading.
    pub title: String,
    /// What to read from it.
    pub caption: String,
    /// Where it comes from.
    pub provenance: Provenance,
    /// Its kind and data.
    pub plot: Plot,
}

/// Which runs stand behind a figure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// The first seed.
    pub first_seed: u64,
    /// How many seeds from there on; 1 for a figure of a single run.
    pub seeds: u64,
    /// The command that repeats it.
    pub command: String,
}

/// Kinds of figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Plot {
    /// One quantity over two axes of the matrix.
    HeatMap(HeatMap),
    /// Cumulative distributions.
    Cdf(Cdf),
    /// Figures with their intervals, side by side.
    Bars(Bars),
    /// One quantity as another varies.
    Lines(Lines),
    /// What happened in one run.
    TimeSeries(TimeSeries),
    /// Words and figures that are no picture.
    Table(FigureTable),
}

/// One quantity over two axes of the matrix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeatMap {
    /// What varies from left to right: `buffer, BDP`.
    pub x_label: String,
    /// Its values.
    pub x: Vec<String>,
    /// What varies from bottom to top.
    pub y_label: String,
    /// Its values, the lowest row first.
    pub y: Vec<String>,
    /// What is shown: `goodput of bbr3 over cubic`.
    pub quantity: String,
    /// Its unit; empty for ratios.
    pub unit: String,
    /// A row for each value of y with a cell for each value of x; `None` where nothing is known.
    pub values: Vec<Vec<Option<f64>>>,
    /// How values become colours.
    pub scale: HeatScale,
    /// Whether equal ratios, not equal differences, are equally far in colour.
    pub log: bool,
    /// Which values are better; `None` where neither is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub better: Option<Better>,
}

/// Which of two values is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// The lower one: a time, a loss.
    Lower,
    /// The higher one: a rate.
    Higher,
}

/// How values become colours.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HeatScale {
    /// From pale to full.
    Sequential,
    /// From one colour over none, at this value, to another: 1 for ratios, 0 for differences.
    Diverging(f64),
}

/// Cumulative distributions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cdf {
    /// What is distributed: `completion`.
    pub x_label: String,
    /// Its unit.
    pub unit: String,
    /// Whether x is on a log scale; all x are then above zero.
    pub log_x: bool,
    /// The distributions.
    pub curves: Vec<Curve>,
}

/// A curve without intervals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// Its name.
    pub label: String,
    /// The controller it stands for, which gives it its colour; empty where it stands for none.
    pub cc: String,
    /// x, ascending, with y. Of a distribution: a value, ascending, with the share (0 to 1) of
    /// samples up to and including it.
    pub points: Vec<(f64, f64)>,
}

/// Figures with their intervals, side by side, all from zero.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bars {
    /// What the bars show: `playback latency`.
    pub quantity: String,
    /// Its unit.
    pub unit: String,
    /// Bars to compare with each other.
    pub groups: Vec<BarGroup>,
}

/// Bars to compare with each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BarGroup {
    /// What they have in common: `p90`.
    pub label: String,
    /// The bars.
    pub bars: Vec<Bar>,
}

/// One bar.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bar {
    /// Its name.
    pub label: String,
    /// The controller it stands for; may be empty.
    pub cc: String,
    /// Its length.
    pub value: f64,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Upper end of its interval.
    pub high: Option<f64>,
}

/// One quantity as another varies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lines {
    /// What varies, with its unit: `random loss, %`.
    pub x_label: String,
    /// What stands at 0, 1, 2 and so on, where x has names instead of numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub x_names: Vec<String>,
    /// What is shown, with its unit.
    pub y_label: String,
    /// Whether x is on a log scale; all x are then above zero.
    pub log_x: bool,
    /// Whether y is on a log scale; all y are then above zero.
    pub log_y: bool,
    /// The curves.
    pub curves: Vec<EstimateCurve>,
}

/// A curve with intervals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EstimateCurve {
    /// Its name.
    pub label: String,
    /// The controller it stands for; may be empty.
    pub cc: String,
    /// Whether it is somebody else's result: drawn with dashes and hollow marks.
    pub published: bool,
    /// Its points, x ascending.
    pub points: Vec<EstimatePoint>,
}

/// One point of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EstimatePoint {
    /// Where.
    pub x: f64,
    /// What.
    pub y: f64,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Upper end of its interval.
    pub high: Option<f64>,
}

/// What happened in one run: panels over one time axis, in seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimeSeries {
    /// One quantity each, top to bottom.
    pub panels: Vec<TimePanel>,
    /// Moments to point out: seconds and what happened.
    pub marks: Vec<(f64, String)>,
}

/// One quantity over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimePanel {
    /// What it is: `queue`.
    pub label: String,
    /// Its unit.
    pub unit: String,
    /// Seconds and values.
    pub curves: Vec<Curve>,
}

/// A table among the figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FigureTable {
    /// Its columns; the first one names the rows.
    pub columns: Vec<TableColumn>,
    /// Its rows; missing cells are empty.
    pub rows: Vec<Vec<String>>,
}

/// One column of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableColumn {
    /// Its heading.
    pub label: String,
    /// Unit of its figures; may be empty.
    pub unit: String,
    /// Which edge its cells touch.
    pub align: Align,
}
