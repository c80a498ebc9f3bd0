//! Data of figures.

use serde::{Deserialize, Serialize};
use uncork_terminal::Align;

/// A figure with caption and provenance. Values are in the displayed
/// units.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Figure {
    /// Name for links, unique in the document.
    pub id: String,
    /// Heading.
    pub title: String,
    /// Caption.
    pub caption: String,
    /// Provenance.
    pub provenance: Provenance,
    /// Kind and data.
    pub plot: Plot,
}

/// Runs behind a figure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Provenance {
    /// First seed.
    pub first_seed: u64,
    /// Number of seeds; 1 for a single run.
    pub seeds: u64,
    /// Command that repeats it.
    pub command: String,
}

/// Kinds of figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Plot {
    /// One quantity over two axes of the matrix.
    HeatMap(HeatMap),
    /// Cumulative distributions.
    Cdf(Cdf),
    /// Bars with intervals, from zero.
    Bars(Bars),
    /// One quantity as another varies.
    Lines(Lines),
    /// A run over time: panels over one time axis, in seconds.
    TimeSeries(TimeSeries),
    /// A table.
    Table(FigureTable),
}

/// One quantity over two axes of the matrix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
pub struct HeatMap {
    /// Label of the x axis: `buffer, BDP`.
    pub x_label: String,
    /// Values of the x axis.
    pub x: Vec<String>,
    /// Label of the y axis.
    pub y_label: String,
    /// Values of the y axis, lowest row first.
    pub y: Vec<String>,
    /// Quantity: `goodput of bbr3 over cubic`.
    pub quantity: String,
    /// Unit; empty for ratios.
    pub unit: String,
    /// A row for each y, in it a value for each x; null if unknown.
    pub values: Vec<Vec<Option<f64>>>,
    /// Colour scale.
    pub scale: HeatScale,
    /// Whether the colour scale is logarithmic.
    pub log: bool,
    /// Which values are better; absent if neither.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub better: Option<Better>,
}

/// Which of two values is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// The lower: a time, a loss.
    Lower,
    /// The higher: a rate.
    Higher,
}

/// Colour scale.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum HeatScale {
    /// Sequential.
    Sequential,
    /// Diverging from this value: 1 for ratios, 0 for differences.
    Diverging(f64),
}

/// Cumulative distributions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
pub struct Cdf {
    /// Quantity: `completion`.
    pub x_label: String,
    /// Unit.
    pub unit: String,
    /// Whether x is logarithmic, with all x above zero.
    pub log_x: bool,
    /// Distributions.
    pub curves: Vec<Curve>,
}

/// A curve without intervals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Curve {
    /// Name.
    pub label: String,
    /// Controller, which sets the colour; may be empty.
    pub cc: String,
    /// Points [x, y], x ascending. In a distribution y is the share (0 to 1) of
    /// samples up to x.
    pub points: Vec<(f64, f64)>,
}

/// Bars with intervals, from zero.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
pub struct Bars {
    /// Quantity: `playback latency`.
    pub quantity: String,
    /// Unit.
    pub unit: String,
    /// A group of bars.
    pub groups: Vec<BarGroup>,
}

/// A group of bars.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BarGroup {
    /// Label of the group: `p90`.
    pub label: String,
    /// Bars.
    pub bars: Vec<Bar>,
}

/// One bar.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Bar {
    /// Name.
    pub label: String,
    /// Controller, which sets the colour; may be empty.
    pub cc: String,
    /// Value.
    pub value: f64,
    /// Lower end of the interval.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
}

/// One quantity as another varies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
pub struct Lines {
    /// Label of the x axis with unit: `random loss, %`.
    pub x_label: String,
    /// Names of x = 0, 1, 2 and so on, if x is not a number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub x_names: Vec<String>,
    /// Label of the y axis with unit.
    pub y_label: String,
    /// Whether x is logarithmic, with all x above zero.
    pub log_x: bool,
    /// Whether y is logarithmic, with all y above zero.
    pub log_y: bool,
    /// Curves.
    pub curves: Vec<EstimateCurve>,
}

/// A curve with intervals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EstimateCurve {
    /// Name.
    pub label: String,
    /// Controller, which sets the colour; may be empty.
    pub cc: String,
    /// Whether it is a published result, drawn with dashes and hollow marks.
    pub published: bool,
    /// Points, x ascending.
    pub points: Vec<EstimatePoint>,
}

/// A point with interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EstimatePoint {
    /// x.
    pub x: f64,
    /// y.
    pub y: f64,
    /// Lower end of the interval.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
}

/// A run over time: panels over one time axis, in seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
pub struct TimeSeries {
    /// Panels, top to bottom.
    pub panels: Vec<TimePanel>,
    /// States of the controllers.
    #[serde(default)]
    pub states: Vec<StateRow>,
    /// Events: seconds and text.
    pub marks: Vec<(f64, String)>,
}

/// One quantity over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TimePanel {
    /// Label: `queue`.
    pub label: String,
    /// Unit.
    pub unit: String,
    /// Curves of [seconds, value].
    pub curves: Vec<Curve>,
    /// Limits of the path.
    #[serde(default)]
    pub limits: Vec<Limit>,
}

/// A limit of the path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Limit {
    /// Name: `link rate`.
    pub label: String,
    /// Value in the unit of the panel.
    pub value: f64,
    /// Whether values stay below it.
    pub is_upper: bool,
}

/// States of the controller of a flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StateRow {
    /// Name of the flow.
    pub label: String,
    /// State and its start and end in seconds, in the order of time.
    pub spans: Vec<(String, f64, f64)>,
}

/// A table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
pub struct FigureTable {
    /// Columns; the first names the rows.
    pub columns: Vec<TableColumn>,
    /// Rows; missing cells are empty.
    pub rows: Vec<Vec<String>>,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TableColumn {
    /// Heading.
    pub label: String,
    /// Unit; may be empty.
    pub unit: String,
    /// Alignment.
    pub align: Align,
}
