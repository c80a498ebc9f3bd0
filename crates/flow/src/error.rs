//! What can be wrong with a file of records.

use std::fmt;
use std::io;

use parquet::errors::ParquetError;

/// Why records could not be written or read.
#[derive(Debug)]
#[non_exhaustive]
pub enum FileError {
    /// The writer or reader given failed.
    Io(io::Error),
    /// The file is no valid Parquet.
    Parquet(ParquetError),
    /// The table lacks a column.
    MissingColumn(&'static str),
    /// A column holds values of another type, or beyond its range.
    UnexpectedValue(&'static str),
    /// A line is not the JSON of a record.
    Json {
        /// Its number, from 1.
        line: usize,
        /// What is wrong with it.
        error: serde_json::Error,
    },
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Parquet(error) => error.fmt(f),
            Self::MissingColumn(name) => write!(f, "the table has no column {name}"),
            Self::UnexpectedValue(name) => {
                write!(f, "column {name} of the table holds a value of another kind")
            }
            Self::Json { line, error } => write!(f, "line {line}: {error}"),
        }
    }
}

impl std::error::Error for FileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            Self::Parquet(error) => Some(error),
            Self::Json { error, .. } => Some(error),
            Self::MissingColumn(_) | Self::UnexpectedValue(_) => None,
        }
    }
}

impl From<io::Error> for FileError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<ParquetError> for FileError {
    /// Takes the error of a writer out of its wrapping, so that a full disk reads as one.
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
