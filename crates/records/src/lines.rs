//! A line of JSON for each record.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use uncork_flow::{FlowRecord, write_json_lines};

use crate::{Outcome, Sink};

/// A file that lines are appended to. It never ends with a partial line.
pub(crate) struct Lines {
    path: PathBuf,
    file: File,
    /// Lines that wait, and their number.
    text: Vec<u8>,
    waiting: u64,
}

impl Lines {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = append(path)?;
        Ok(Self { path: path.to_owned(), file, text: Vec::new(), waiting: 0 })
    }

    /// Undo a partial write.
    fn write(&mut self) -> io::Result<()> {
        let before = self.file.metadata()?.len();
        let written = self.file.write_all(&self.text);
        if written.is_err() {
            // Devices and pipes have no length.
            let _ = self.file.set_len(before);
        }
        written
    }
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
}

impl Sink for Lines {
    fn take(&mut self, record: Arc<FlowRecord>) {
        // Writing to memory cannot fail.
        let _ = write_json_lines(&mut self.text, [&*record]);
        self.waiting += 1;
    }

    fn patience(&self) -> Option<Duration> {
        (self.waiting > 0).then_some(Duration::ZERO)
    }

    fn flush(&mut self) -> Outcome {
        let written = self.write();
        let waiting = mem::take(&mut self.waiting);
        self.text.clear();
        match written {
            Ok(()) => Outcome { written: waiting, ..Outcome::default() },
            Err(error) => Outcome::failed(&self.path, &error, waiting),
        }
    }

    fn reopen(&mut self) -> Outcome {
        let outcome = self.flush();
        match append(&self.path) {
            Ok(file) => {
                self.file = file;
                outcome
            }
            Err(error) => outcome.and(Outcome::failed(&self.path, &error, 0)),
        }
    }

    fn end(&mut self) -> Outcome {
        self.flush()
    }
}
