//! Writes flow records to files on a thread of its own, so that callers never wait for a disk.
//!
//! If a disk is full or too slow, records are lost and counted; the program goes on.
#![forbid(unsafe_code)]

mod clock;
mod error;
mod lines;
mod merged;
mod queue;
mod rolled;
mod rollup_files;
mod rotating;
mod stamp;
#[cfg(test)]
mod tests;
pub mod writable;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub use self::error::RecordsError;
use self::lines::Lines;
pub use self::merged::{MergeError, MergedPeriod, merge_rollups, rollup_damage};
pub use self::queue::{Records, Tally, Writer};
use self::rolled::Rolled;
pub use self::rollup_files::{ROLLUP_PREFIX, is_named_rollup, other_rollup, write_rollup};
use self::rotating::Rotating;
pub use self::stamp::{rfc3339, stamp};
pub use uncork_rollup::{Metric, Period, RollupSpec, Sample};

/// The destination of records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordsSpec {
    /// A file, which gets a line of JSON for each record. Or a directory, if one exists or the path
    /// ends with `/`, which gets Parquet files.
    pub path: PathBuf,
    /// How often the directory gets a file, if records wait.
    pub every: Duration,
    /// Records of one kind after which the directory gets a file, however soon: they wait in
    /// memory.
    pub rows: usize,
    /// Write roll-ups to the directory, too.
    pub rollup: Option<RollupSpec>,
    /// The share of all units with records of their own, next to roll-ups.
    pub sample: Sample,
}

/// The number of records written and lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordsSummary {
    /// Records written.
    pub written: u64,
    /// Records lost: no room in memory because the disk was too slow, or no room on the disk.
    pub lost: u64,
}

impl RecordsSummary {
    /// How many were lost; `None` without losses.
    pub fn warning(&self) -> Option<String> {
        let Self { written, lost } = *self;
        let all = written + lost;
        (lost > 0)
            .then(|| format!("{lost} of {all} records were lost: the disk was full, or they came faster than they are written"))
    }
}

impl RecordsSpec {
    /// Writes records to `path`. A directory gets a file every five minutes, or for 50,000 records.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            every: Duration::from_mins(5),
            rows: 50_000,
            rollup: None,
            sample: Sample::ALL,
        }
    }

    /// Checks whether [`Self::open`] would succeed. Leaves nothing behind.
    ///
    /// # Errors
    ///
    /// The errors of [`Self::open`].
    pub fn check(&self) -> Result<(), RecordsError> {
        let writable = if self.is_directory() {
            writable::directory(&self.path)
        } else {
            self.check_name()?;
            writable::file(&self.path)
        };
        writable.map_err(|error| RecordsError::Unwritable(self.path.clone(), error))
    }

    /// Parquet needs a directory.
    fn check_name(&self) -> Result<(), RecordsError> {
        if self.rollup.is_some() {
            return Err(RecordsError::RollupIntoFile(self.path.clone()));
        }
        match self.path.extension() {
            Some(extension) if extension == "parquet" => {
                Err(RecordsError::OneParquetFile(self.path.clone()))
            }
            _ => Ok(()),
        }
    }

    fn is_directory(&self) -> bool {
        self.path.is_dir() || self.path.as_os_str().as_encoded_bytes().ends_with(b"/")
    }

    /// Starts the thread that writes.
    ///
    /// # Errors
    ///
    /// If the file or directory cannot be written, or the name is valid for neither.
    pub fn open(&self) -> Result<(Records, Writer), RecordsError> {
        let failed = |error| RecordsError::Unwritable(self.path.clone(), error);
        let sink: Box<dyn Sink> = if self.is_directory() {
            let rotating = Box::new(Rotating::open(self).map_err(failed)?);
            match &self.rollup {
                Some(rollup) => Box::new(Rolled::new(self, rollup.clone(), rotating)),
                None => rotating,
            }
        } else {
            self.check_name()?;
            Box::new(Lines::open(&self.path).map_err(failed)?)
        };
        queue::start(sink).map_err(failed)
    }
}

/// A destination that records are written to. After a failure it goes on with the next records.
trait Sink: Send {
    /// Takes a record.
    fn take(&mut self, record: Arc<uncork_flow::FlowRecord>);
    /// How long the buffered records may wait for [`Sink::flush`].
    fn patience(&self) -> Option<Duration>;
    /// Writes the records that are due.
    fn flush(&mut self) -> Outcome;
    /// Writes all records, then goes on in another file: this one may have been renamed.
    fn reopen(&mut self) -> Outcome;
    /// Writes all records.
    fn end(&mut self) -> Outcome;
}

/// The result of writing.
#[derive(Debug, Default)]
struct Outcome {
    written: u64,
    lost: u64,
    /// Why records were not written, at least for now.
    problem: Option<String>,
}

impl Outcome {
    /// `lost` records will never be in `path`.
    fn failed(path: &Path, error: &dyn std::fmt::Display, lost: u64) -> Self {
        let problem = format!("cannot write records to '{}': {error}", path.display());
        Self { written: 0, lost, problem: Some(problem) }
    }

    fn and(self, other: Self) -> Self {
        Self {
            written: self.written + other.written,
            lost: self.lost + other.lost,
            problem: self.problem.or(other.problem),
        }
    }
}
