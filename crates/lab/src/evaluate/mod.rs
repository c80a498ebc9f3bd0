//! From runs to answers: metrics, thresholds, comparisons with what was published, figures.

mod answers;
mod document;
mod estimate;
mod figures;
mod outcome;
mod results;
mod samples;
mod tables;
#[cfg(test)]
mod tests;
mod time_series;
mod units;

pub use document::{RunCost, SampledCell, document};
pub(crate) use units::shown;

pub use outcome::{RunOutcome, run_item};
