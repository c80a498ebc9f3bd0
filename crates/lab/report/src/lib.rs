//! Result documents and their output formats: text tables, CSV, JSON, SVG charts and a
//! self-contained HTML page.
//!
//! Everything here is a pure function from documents to strings. Equal documents give equal output.
#![forbid(unsafe_code)]

mod csv_text;
mod escape;
#[cfg(test)]
mod for_python;
mod json;
pub mod lab;
mod number;
pub mod play;
mod svg;
mod words;

pub use json::DocumentError;
use uncork_page as page;
