//! A roll-up as a Parquet file. Columns of keys have the names of the flow record's, so that engines read both together.

mod cells;
mod columns;
mod read;
mod write;

pub(crate) use self::read::RollupFile;
pub use self::read::is_rollup;

/// The schema in the file's metadata.
const SCHEMA: &str = "uncork.rollup/1";
/// Of a merged file: the content hashes of the files that it counts, each as 16 hexadecimal digits.
const SOURCES: &str = "rollup.sources";
