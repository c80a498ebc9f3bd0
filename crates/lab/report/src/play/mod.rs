//! Measurements of `uncork play`: downloads and listeners.

mod get;
mod listen;

pub use get::{GetDocument, TransferFigures};
pub use listen::{AudienceFigures, ListenDocument, ListenerFigures};

use uncork_terminal::Column;

use crate::number::{decimals, rounded};

/// A column of figures.
fn figures(group: &str, name: &str) -> Column {
    Column { group: group.to_owned(), ..Column::right(name) }
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
