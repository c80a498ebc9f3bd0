//! Errors of a destination for records.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why records cannot be written. The message names the remedy.
#[derive(Debug, Error)]
pub enum RecordsError {
    /// The file or directory cannot be written.
    #[error("cannot write records to '{path}': {1}", path = .0.display())]
    Unwritable(PathBuf, #[source] io::Error),
    /// Roll-ups need a directory.
    #[error(
        "cannot write roll-ups to '{path}': each period gets a file; write DIR/",
        path = .0.display()
    )]
    RollupIntoFile(PathBuf),
    /// Records cannot go to one Parquet file.
    #[error(
        "cannot write records to '{path}': Parquet needs a directory, for a file at a time; write DIR/, or \
         FILE.jsonl for lines of JSON",
        path = .0.display()
    )]
    OneParquetFile(PathBuf),
}
