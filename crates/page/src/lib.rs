//! The look of reports and of the server's admin page: one style, and one library of charts.
#![forbid(unsafe_code)]

/// Style of all pages: their colours, by light and by dark, their text and their tables.
pub const STYLE: &str = include_str!("page.css");

/// Style of charts that a script draws.
pub const UPLOT_STYLE: &str = include_str!("../vendor/uplot/uPlot.min.css");

/// The library that draws them, `uPlot`, behind its licence.
pub const UPLOT_SCRIPT: &str = concat!(
    "/*! ",
    include_str!("../vendor/uplot/LICENSE"),
    "*/\n",
    include_str!("../vendor/uplot/uPlot.iife.min.js"),
);
