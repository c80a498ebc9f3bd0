//! What the figures of a report are drawn from.

use uncork_flow::SeriesPoint;

/// One shown run for each column of a comparison.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReportSeries {
    /// In the order of [`CompareDocument::results`](crate::CompareDocument::results).
    pub columns: Vec<ColumnSeries>,
}

/// One shown run of a column, and how all its transfers fared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ColumnSeries {
    /// The column's label, as in [`ColumnResult::cc`](crate::ColumnResult::cc).
    pub label: String,
    /// Seed of the run that is shown.
    pub seed: u64,
    /// Controller of each flow, by the flow's index.
    pub cc: Vec<String>,
    /// The run, in any order.
    pub points: Vec<SeriesPoint>,
    /// Seconds that each finished transfer took, over all seeds, in any order.
    pub completions_s: Vec<f64>,
}
