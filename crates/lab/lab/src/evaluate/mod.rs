//! Evaluation of runs: metrics, thresholds, comparisons with publications, figures.

mod answers;
mod comparisons;
#[cfg(test)]
mod conclusions;
mod document;
mod estimate;
mod figures;
mod marks;
mod outcome;
mod results;
mod samples;
mod starts;
mod tables;
#[cfg(test)]
mod tests;
mod time_series;
mod units;
mod usual_figures;
mod window;
#[cfg(test)]
mod within_the_link;
#[cfg(test)]
mod wrong_controllers;

pub(crate) use document::{SampledCell, comparison_document, document};
pub(crate) use outcome::outcome;
pub use outcome::{CommandOutcome, RunOutcome};
