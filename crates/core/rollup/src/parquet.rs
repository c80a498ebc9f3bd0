//! A roll-up as a Parquet file. Columns of keys have the names of the flow record's, so that engines read both together.

mod columns;
mod read;
mod write;

pub use self::read::is_rollup;

/// The schema in the file's metadata.
const SCHEMA: &str = "uncork.rollup/1";
