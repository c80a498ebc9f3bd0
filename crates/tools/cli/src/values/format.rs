//! Formats of results.

use clap::ValueEnum;

/// Output formats: text or JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TextFormat {
    /// Text
    Human,
    /// JSON
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A table
    Human,
    /// The result document
    Json,
    /// The table for a spreadsheet
    Csv,
}
