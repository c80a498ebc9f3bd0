//! Measurements of `uncork play`: downloads and listeners.

mod get;
mod listen;

pub use get::{GetDocument, TransferFigures};
pub use listen::{AudienceFigures, ListenDocument, ListenerFigures};

use crate::number::{decimals, rounded};
use uncork_terminal::{Align, Column};

/// A text column.
fn words(name: &str) -> Column {
    Column { group: String::new(), name: name.to_owned(), align: Align::Left }
}

/// A column of figures.
fn figures(group: &str, name: &str) -> Column {
    Column { group: group.to_owned(), name: name.to_owned(), align: Align::Right }
}

/// `values` as a column with the same number of decimals; missing values are a dash.
fn column(values: impl Iterator<Item = Option<f64>> + Clone) -> impl Iterator<Item = String> {
    let digits = decimals(values.clone().flatten());
    let cell = move |value: f64| format!("{value:.digits$}");
    values.map(move |value| value.map_or_else(|| "-".to_owned(), cell))
}

/// A figure as written to files.
fn figure(value: Option<f64>) -> Option<f64> {
    value.map(|value| rounded(value, 6))
}
