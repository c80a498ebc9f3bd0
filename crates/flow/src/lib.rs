//! The flow record: what every engine leaves of a transfer, and all that tables, plots and
//! experiments read.
#![forbid(unsafe_code)]

mod histogram;
mod record;
mod series;

pub use histogram::Distribution;
pub use record::{FlowRecord, Quantiles};
pub use series::SeriesPoint;
