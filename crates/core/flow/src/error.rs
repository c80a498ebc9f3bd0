//! Errors of files of records.

use std::io;

#[cfg(not(target_family = "wasm"))]
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
    #[cfg(not(target_family = "wasm"))]
    #[error(transparent)]
    Parquet(ParquetError),
    /// The table lacks a column.
    #[error("the table has no column {0}")]
    MissingColumn(&'static str),
    /// A column is compressed by a codec that this build does not have.
    #[error(
        "column {column} is compressed with {codec}, which is not supported here; write the file with zstd, gzip, lz4 or snappy"
    )]
    Codec {
        /// The column.
        column: String,
        /// The codec.
        codec: &'static str,
    },
    /// A cell holds a value of another type, or beyond its range.
    #[error(
        "row {row}, column {column}: expected {expected}, found {found}; correct the value, or leave the column out"
    )]
    Cell {
        /// The row, from 1.
        row: usize,
        /// The column.
        column: &'static str,
        /// What it holds in other tables.
        expected: &'static str,
        /// What it holds here.
        found: String,
    },
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

#[cfg(not(target_family = "wasm"))]
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
