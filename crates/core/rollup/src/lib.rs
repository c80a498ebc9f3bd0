//! Roll-ups: flow records as counts that merge by addition.
//!
//! ```text
//! FlowRecord ─► Rollup::add ─► rows by unit, arm, bucket, size class … ─► Rollup::to_parquet
//!                                  │ more than `max_rows`
//!                                  └─► folded into the AS of the client, then into all clients
//! ```
//!
//! All that a row holds adds up, so `roll-up(a ++ b)` is the merger of `roll-up(a)` and `roll-up(b)`, in any order and any
//! split. Which rows are folded depends on a hash of the unit and on the set of records alone, so this also holds for
//! roll-ups of limited size. [`Merger`] adds up files of many hosts, each once. Pure: no clock, file or socket.
#![forbid(unsafe_code)]

mod bins;
mod error;
mod group;
mod hash;
mod health;
mod key;
mod merger;
mod metric;
mod parquet;
mod rollup;
mod rollups;
mod spec;
#[cfg(test)]
mod tests;
mod traffic;
mod values;

pub use self::bins::{GAMMA, IMPOSSIBLE, LN_GAMMA, bin_of};
pub use self::error::RollupError;
pub use self::hash::{Sample, content_hash, sample_hash};
pub use self::merger::Merger;
pub use self::metric::{CHUNK_BYTES, Metric, Ratio, SIZE_LIMITS};
pub use self::parquet::is_rollup;
pub use self::rollup::Rollup;
pub use self::rollups::Rollups;
pub use self::spec::{DEFAULT_MAX_ROWS, Period, RollupSpec};
