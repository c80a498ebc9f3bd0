//! A line of JSON for each record.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use uncork_flow::{FlowRecord, write_json_lines};

use crate::{Outcome, Sink};

/// A file that lines are appended to. It never ends with a partial line, except after SIGKILL or a loss of power.
pub(crate) struct Lines {
    path: PathBuf,
    file: File,
    /// Lines that wait, and their number.
    text: Vec<u8>,
    waiting: u64,
}

impl Lines {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let mut file = append(path)?;
        if ends_with_a_partial_line(path)? {
            file.write_all(b"\n")?;
        }
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

/// Whether a process was killed while it wrote to this file: its part of a line must not spoil the next one.
fn ends_with_a_partial_line(path: &Path) -> io::Result<bool> {
    // Devices and pipes have no end.
    let length = fs::metadata(path)?;
    if !length.is_file() || length.len() == 0 {
        return Ok(false);
    }
    let Ok(mut file) = File::open(path) else {
        // It may be appended to, but not read.
        return Ok(false);
    };
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
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
