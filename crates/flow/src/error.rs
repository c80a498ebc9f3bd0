//! Errors of files of records.

use std::io;

use parquet::errors::ParquetError;
use thiserror::Error;

/// Why records could not be written or read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FileError {
    /// The writer or reader given failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file is not valid Parquet.
    #[error(transparent)]
    Parquet(ParquetError),
    /// The table lacks a column.
    #[error("the table has no column {0}")]
    MissingColumn(&'static str),
    /// A column holds values of another type, or beyond its range.
    #[error("column {0} has a value of another type, or beyond its range")]
    UnexpectedValue(&'static str),
    /// A line is not the JSON of a record.
    #[error("line {line}: {error}")]
    Json {
        /// Its number, from 1.
        line: usize,
        /// The error.
        #[source]
        error: serde_json::Error,
    },
}

impl From<ParquetError> for FileError {
    /// Extracts the writer's error, so that a full disk is reported as such.
    fn from(error: ParquetError) -> Self {
        match error {
            ParquetError::External(error) => match error.downcast() {
                Ok(error) => Self::Io(*error),
                Err(error) => Self::Parquet(ParquetError::External(error)),
            },
            error => Self::Parquet(error),
        }
    }
}
