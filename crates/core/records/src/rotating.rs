//! Parquet files in a directory. A file is complete before it gets its final name.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use uncork_flow::{FileError, FlowRecord, Labelled, Scope, TableHead, publish, write_flows};

use crate::stamp::stamp;
use crate::{Outcome, RecordsSpec, Sink, clock, writable};

/// A directory that repeatedly gets a file for each kind of record.
pub(crate) struct Rotating {
    directory: PathBuf,
    every: Duration,
    tables: [WaitingRecords; 2],
    /// When the waiting records are due.
    due: Option<Instant>,
    files: u64,
}

/// Records of one kind that wait for their file.
struct WaitingRecords {
    name: &'static str,
    rows: Vec<Arc<FlowRecord>>,
    most: usize,
}

impl Rotating {
    pub(crate) fn open(spec: &RecordsSpec) -> io::Result<Self> {
        fs::create_dir_all(&spec.path)?;
        // Fail at the start, not in five minutes.
        writable::takes_files(&spec.path)?;
        let most = spec.rows.max(1);
        Ok(Self {
            directory: spec.path.clone(),
            every: spec.every,
            tables: ["responses", "connections"].map(|name| WaitingRecords {
                name,
                rows: Vec::new(),
                most,
            }),
            due: None,
            files: 0,
        })
    }

    /// Writes the tables that are `due`.
    fn write(&mut self, due: impl Fn(&WaitingRecords) -> bool) -> Outcome {
        let mut outcome = Outcome::default();
        for table in self.tables.iter_mut().filter(|table| !table.rows.is_empty() && due(table)) {
            self.files += 1;
            outcome = outcome.and(table.write(&self.directory, self.files));
        }
        outcome
    }

    fn write_all(&mut self) -> Outcome {
        let outcome = self.write(|_| true);
        self.due = None;
        if self.tables.iter().any(|table| !table.rows.is_empty()) {
            self.wait();
        }
        outcome
    }

    fn wait(&mut self) {
        if self.due.is_none() {
            self.due = Some(clock::now() + self.every);
        }
    }
}

impl WaitingRecords {
    fn is_full(&self) -> bool {
        self.rows.len() >= self.most
    }

    /// Writes a file under a temporary name, then renames it to the name with this `number`. If
    /// that fails, the records wait for the next time, while there is room.
    fn write(&mut self, directory: &Path, number: u64) -> Outcome {
        let name = format!(
            "{}-{}-{}-{number:06}.parquet",
            self.name,
            stamp(clock::today()),
            std::process::id()
        );
        let (part, whole) = (directory.join(format!(".{name}.part")), directory.join(name));
        let count = self.rows.len() as u64;
        match self.write_to(&part).and_then(|()| Ok(publish(&part, &whole)?)) {
            Ok(()) => {
                self.rows.clear();
                Outcome { written: count, ..Outcome::default() }
            }
            Err(error) => {
                let _ = fs::remove_file(&part);
                let lost = if self.is_full() { count } else { 0 };
                if lost > 0 {
                    self.rows.clear();
                }
                Outcome::failed(directory, &error, lost)
            }
        }
    }

    fn write_to(&self, path: &Path) -> Result<(), FileError> {
        let mut out = BufWriter::new(File::create(path)?);
        write_flows(
            &mut out,
            &TableHead::default(),
            self.rows.iter().map(|row| Labelled::plain(&**row)),
        )?;
        Ok(out.flush()?)
    }
}

impl Sink for Rotating {
    fn take(&mut self, record: Arc<FlowRecord>) {
        let scope = record.service.as_ref().map(|service| service.scope);
        self.tables[usize::from(scope == Some(Scope::Connection))].rows.push(record);
        self.wait();
    }

    fn patience(&self) -> Option<Duration> {
        if self.tables.iter().any(WaitingRecords::is_full) {
            return Some(Duration::ZERO);
        }
        self.due.map(|due| due.saturating_duration_since(clock::now()))
    }

    fn flush(&mut self) -> Outcome {
        if self.due.is_some_and(|due| due <= clock::now()) {
            return self.write_all();
        }
        self.write(WaitingRecords::is_full)
    }

    fn reopen(&mut self) -> Outcome {
        self.write_all()
    }

    fn end(&mut self) -> Outcome {
        let outcome = self.write_all();
        let left: usize = self.tables.iter().map(|table| table.rows.len()).sum();
        Outcome { lost: outcome.lost + left as u64, ..outcome }
    }
}
