//! Variable link rates: steps, recorded traces, generated traces.

mod curve;
mod link;
mod lte;
mod opportunities;
mod parse;
mod spec;
mod trace;

pub use link::LinkRate;
pub use lte::{LteError, LteSpec};
pub use parse::{TraceError, TraceProblem};
pub use spec::{RateSpec, TraceSpec, TraceStart};
pub use trace::Trace;

/// Data is counted in billionths of a byte: a rate in bytes per second sends that many units per
/// nanosecond, so nothing is rounded.
const UNITS_PER_BYTE: u64 = 1_000_000_000;
