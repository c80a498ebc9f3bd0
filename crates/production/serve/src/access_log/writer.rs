//! A thread that writes lines: a disk that is slow or full costs lines, never responses.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use crate::error::ServeError;

/// Lines that may wait to be written.
const WAITING: usize = 4096;

/// Where responses leave their lines.
#[derive(Clone, Debug)]
pub(crate) struct AccessLog {
    queue: SyncSender<LogEntry>,
    problem: Arc<Mutex<WriteProblem>>,
}

/// The writing thread.
#[derive(Debug)]
pub(crate) struct AccessLogWriter {
    thread: JoinHandle<()>,
    log: AccessLog,
}

#[derive(Debug)]
enum LogEntry {
    Line(String),
    Reopen,
    End,
}

/// Why lines are lost, until writing succeeds again; and whether the loss was reported.
#[derive(Debug, Default)]
struct WriteProblem {
    text: Option<String>,
    is_reported: bool,
}

impl AccessLog {
    /// Appends to the file, which is made if it is missing.
    pub(crate) fn open(path: &Path) -> Result<AccessLogWriter, ServeError> {
        let file = append(path).map_err(|error| ServeError::AccessLog(path.to_owned(), error))?;
        let (queue, received) = sync_channel(WAITING);
        let log = Self { queue, problem: Arc::default() };
        let (path, reporter) = (path.to_owned(), log.clone());
        let named = thread::Builder::new().name("access-log".to_owned());
        let thread = named.spawn(move || write_all(&path, file, &received, &reporter));
        let thread = thread.map_err(|error| ServeError::System("start threads", error))?;
        Ok(AccessLogWriter { thread, log })
    }

    /// Leaves a line, if there is room.
    pub(super) fn leave(&self, line: String) {
        if self.queue.try_send(LogEntry::Line(line)).is_err() {
            self.fail("the disk is too slow".to_owned());
        }
    }

    fn fail(&self, text: String) {
        self.problem().text.get_or_insert(text);
    }

    fn problem(&self) -> std::sync::MutexGuard<'_, WriteProblem> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AccessLogWriter {
    pub(crate) fn log(&self) -> &AccessLog {
        &self.log
    }

    /// Goes on in a new file: who rotates logs has renamed this one.
    pub(crate) fn reopen(&self) {
        let _ended = self.log.queue.send(LogEntry::Reopen);
    }

    /// Why lines are lost, once.
    pub(crate) fn problem(&self) -> Option<String> {
        let mut problem = self.log.problem();
        let has_problem = problem.text.is_some();
        if std::mem::replace(&mut problem.is_reported, has_problem) {
            return None;
        }
        problem.text.as_ref().map(|text| format!("lines of the access log are lost: {text}"))
    }

    /// Writes what waits.
    pub(crate) fn end(self) {
        let _ended = self.log.queue.send(LogEntry::End);
        let _ended = self.thread.join();
    }
}

fn append(path: &Path) -> io::Result<BufWriter<File>> {
    OpenOptions::new().append(true).create(true).open(path).map(BufWriter::new)
}

fn write_all(
    path: &Path,
    mut file: BufWriter<File>,
    received: &Receiver<LogEntry>,
    log: &AccessLog,
) {
    while let Ok(first) = received.recv() {
        // All that wait are written at once.
        for entry in [first].into_iter().chain(received.try_iter()) {
            let written = match entry {
                LogEntry::Line(line) => file.write_all(line.as_bytes()),
                LogEntry::Reopen => append(path).map(|new| file = new),
                LogEntry::End => {
                    let _lost = file.flush();
                    return;
                }
            };
            note(log, path, written);
        }
        note(log, path, file.flush());
    }
}

fn note(log: &AccessLog, path: &Path, written: io::Result<()>) {
    match written {
        Ok(()) => {
            let mut problem = log.problem();
            if problem.text.is_some() {
                *problem = WriteProblem::default();
            }
        }
        Err(error) => log.fail(format!("cannot write '{}': {error}", path.display())),
    }
}

#[cfg(test)]
impl AccessLog {
    /// A log of one line, and what gives that.
    pub(super) fn for_tests() -> (Self, impl FnOnce() -> String) {
        let (queue, received) = sync_channel(1);
        let line = move || match received.recv() {
            Ok(LogEntry::Line(line)) => line,
            other => panic!("a line: {other:?}"),
        };
        (Self { queue, problem: Arc::default() }, line)
    }
}
