//! Shared by the reports and the server's admin page: the style sheet, and the chart library.
#![forbid(unsafe_code)]

/// The style sheet of all pages: colours (light and dark), text and tables.
pub const STYLE: &str = include_str!("page.css");

/// The style sheet of uPlot's charts.
pub const UPLOT_STYLE: &str = include_str!("../vendor/uplot/uPlot.min.css");

/// The chart library uPlot, preceded by its licence.
pub const UPLOT_SCRIPT: &str = concat!(
    "/*! ",
    include_str!("../vendor/uplot/LICENSE"),
    "*/\n",
    include_str!("../vendor/uplot/uPlot.iife.min.js"),
);
