//! What `uncork play` measured: downloads and listeners.

mod get;
mod listen;

pub use get::{GetDocument, TransferFigures, get_csv, get_table};
pub use listen::{AudienceFigures, ListenDocument, ListenerFigures, listen_csv, listen_table};

use crate::number::{decimals, rounded};
use crate::table::{Align, Column};

/// A column of words.
fn words(name: &str) -> Column {
    Column { group: String::new(), name: name.to_owned(), align: Align::Left }
}

/// A column of figures.
fn figures(group: &str, name: &str) -> Column {
    Column { group: group.to_owned(), name: name.to_owned(), align: Align::Right }
}

/// `values` as a column, with as many decimals for all; what there is not is a dash.
fn column(values: impl Iterator<Item = Option<f64>> + Clone) -> impl Iterator<Item = String> {
    let digits = decimals(values.clone().flatten());
    let cell = move |value: f64| format!("{value:.digits$}");
    values.map(move |value| value.map_or_else(|| "-".to_owned(), cell))
}

/// A figure as files have it.
fn figure(value: Option<f64>) -> Option<f64> {
    value.map(|value| rounded(value, 6))
}
