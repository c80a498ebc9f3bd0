//! Lab runs: the result document, and its page, text and CSV.

mod answer;
mod check;
mod compact;
mod csv;
mod document;
mod figure;
mod html;
mod inks;
mod priority;
mod published;
mod results;
mod suite;
mod table;
#[cfg(test)]
mod tests;
mod verdict;

pub use answer::{Answer, AnswerKind, Payer, Price, Transfers};
pub use document::{
    Cell, ClassResult, ColumnValue, DataFile, Estimate, LabDocument, LabEngine, MatrixAxis,
    MatrixColumn, Metric, Threshold, axis_title, chooses_controllers,
};
pub use figure::{
    Bar, BarGroup, Bars, Better, Cdf, Curve, EstimateCurve, EstimatePoint, Figure, FigureTable,
    HeatMap, HeatScale, Limit, Lines, Plot, Provenance, StateRow, TableColumn, TimePanel,
    TimeSeries,
};
#[cfg(test)]
pub(crate) use inks::{CONTROLLERS, OTHERS};
pub use published::{Judgement, Published, Verdict};
pub use results::quantity;
pub use suite::SuiteDocument;
