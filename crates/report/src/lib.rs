//! Result documents, and what is made of them: text tables, CSV, JSON, SVG charts and one
//! self-contained HTML page.
//!
//! Everything here is a pure function from documents to strings. Equal documents give equal output.
#![forbid(unsafe_code)]

mod compare_csv;
mod compare_table;
mod csv_text;
mod curves;
mod document;
mod escape;
mod html;
mod json;
pub mod lab;
mod metrics;
mod number;
pub mod play;
#[cfg(test)]
mod sample;
mod series;
pub mod svg;
mod table;
mod words;

pub use compare_csv::compare_csv;
pub use compare_table::compare_table;
pub use document::{
    ColumnResult, CompareDocument, EngineFigures, FlowResult, LossPosition, PathFigures,
    QueueDelay, Spread, Workload,
};
pub use html::compare_html;
pub use json::DocumentError;
pub use series::{ColumnSeries, ReportSeries};
pub use table::{Align, Column, Style, Table};
use uncork_page as page;
