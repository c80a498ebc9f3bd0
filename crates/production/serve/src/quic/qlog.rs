//! Writes a qlog file for each connection.
//!
//! Events are converted to text where they occur, and written by a separate thread. A slow or full
//! disk loses parts of files, but never delays packets.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Instant, UNIX_EPOCH};

use uncork_quic::{Epoch, Event, Qlog, Watch};
use uncork_records::writable;
use uncork_units::Time;

use crate::clock;
use crate::error::ServeError;

/// Maximum number of files that a server writes. Later connections have no file.
const MAX_FILES: u64 = 1000;
/// The maximum size of a file, in bytes.
const MAX_FILE_BYTES: usize = 64 << 20;
/// Text is written in pieces of this size.
const PIECE: usize = 32 * 1024;
/// Maximum number of pieces waiting to be written.
const MAX_WAITING: usize = 1024;
/// Bytes that qlog leaves free on its file system, at most: clients decide how much it writes, and records need space.
const MAX_RESERVED_BYTES: u64 = 1 << 30;

/// Creates the files of connections.
#[derive(Clone)]
pub(crate) struct QlogFiles {
    sender: SyncSender<Option<QlogPiece>>,
    state: Arc<QlogState>,
}

/// The thread that writes the files.
#[derive(Debug)]
pub(crate) struct QlogWriter {
    thread: JoinHandle<()>,
    files: QlogFiles,
}

#[derive(Default)]
struct QlogState {
    begun: AtomicU64,
    problem: Mutex<QlogProblem>,
}

/// The first error, and whether it was reported.
#[derive(Default)]
struct QlogProblem {
    text: Option<String>,
    is_reported: bool,
}

/// A part of the file with this name.
struct QlogPiece {
    name: Arc<str>,
    text: String,
}

/// Converts the events of one connection to text.
struct File {
    qlog: Qlog,
    name: Arc<str>,
    text: String,
    written: usize,
    files: QlogFiles,
}

impl fmt::Debug for QlogFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("QlogFiles")
    }
}

impl QlogFiles {
    /// Writes files to `directory`, which is created if it is missing.
    pub(crate) fn open(directory: &Path) -> Result<(Self, QlogWriter), ServeError> {
        let failed = |error| ServeError::Qlog(directory.to_owned(), error);
        fs::create_dir_all(directory).map_err(failed)?;
        // Fail at the start, not at the first connection.
        writable::takes_files(directory).map_err(failed)?;
        let (sender, receiver) = sync_channel(MAX_WAITING);
        let files = Self { sender, state: Arc::default() };
        let (state, directory) = (Arc::clone(&files.state), directory.to_owned());
        let thread = thread::Builder::new().name("qlog".to_owned());
        let thread = thread.spawn(move || write_all(&directory, &receiver, &state));
        let thread = thread.map_err(|error| ServeError::System("start threads", error))?;
        Ok((files.clone(), QlogWriter { thread, files }))
    }

    /// Checks whether [`Self::open`] would succeed. Leaves nothing behind.
    pub(crate) fn check(directory: &Path) -> Result<(), ServeError> {
        let failed = |error| ServeError::Qlog(directory.to_owned(), error);
        writable::directory(directory).map_err(failed)
    }

    /// The watcher for the connection with this number. Times count from `epoch`.
    pub(crate) fn watch(
        &self,
        number: u32,
        now: Instant,
        epoch: Instant,
    ) -> Option<Box<dyn Watch>> {
        if self.state.begun.fetch_add(1, Ordering::Relaxed) >= MAX_FILES {
            self.state.fail(format!("{MAX_FILES} files of qlog are written: there are no more"));
            return None;
        }
        let unix = clock::today().duration_since(UNIX_EPOCH).unwrap_or_default();
        let name = format!("{}-{number}", unix.as_millis());
        let mut text = String::with_capacity(PIECE + 1024);
        let now = Epoch::new(epoch).time(now);
        let qlog = Qlog::begin(&mut text, &name, now, unix.as_secs_f64() * 1e3);
        let name = format!("{name}.sqlog").into();
        Some(Box::new(File { qlog, name, text, written: 0, files: self.clone() }))
    }
}

impl QlogWriter {
    /// The first error; returned only once.
    pub(crate) fn problem(&self) -> Option<String> {
        let mut problem = self.files.state.problem();
        let text = problem.text.clone().filter(|_| !problem.is_reported);
        problem.is_reported |= text.is_some();
        text
    }

    /// Writes everything that is left and ends the thread.
    pub(crate) fn end(self) {
        let _gone = self.files.sender.send(None);
        let _ended = self.thread.join();
    }
}

impl QlogState {
    fn problem(&self) -> MutexGuard<'_, QlogProblem> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fail(&self, text: String) {
        self.problem().text.get_or_insert(text);
    }
}

impl Watch for File {
    fn event(&mut self, now: Time, event: &Event<'_>) {
        if self.written >= MAX_FILE_BYTES {
            return;
        }
        self.qlog.event(&mut self.text, now, event);
        if self.text.len() >= PIECE {
            self.flush();
        }
    }
}

impl File {
    fn flush(&mut self) {
        let text = std::mem::replace(&mut self.text, String::with_capacity(PIECE + 1024));
        self.written += text.len();
        let piece = QlogPiece { name: Arc::clone(&self.name), text };
        if self.files.sender.try_send(Some(piece)).is_err() {
            self.files
                .state
                .fail("the disk is too slow for qlog: parts of files are missing".into());
        }
    }
}

impl Drop for File {
    fn drop(&mut self) {
        self.flush();
    }
}

fn write_all(directory: &Path, pieces: &Receiver<Option<QlogPiece>>, state: &QlogState) {
    while let Ok(Some(QlogPiece { name, text })) = pieces.recv() {
        let path = directory.join(&*name);
        let written = reserve(directory).and_then(|()| append(&path, &text));
        if let Err(error) = written {
            state.fail(format!("cannot write qlog to '{}': {error}", path.display()));
        }
    }
}

/// Refuses to write where the file system has no more than [`reserved`] bytes left.
fn reserve(directory: &Path) -> io::Result<()> {
    let system = rustix::fs::statvfs(directory)?;
    let (free, all) = (system.f_bavail, system.f_blocks);
    let free = free.saturating_mul(system.f_frsize);
    let reserved = reserved(all.saturating_mul(system.f_frsize));
    if free > reserved {
        return Ok(());
    }
    let (free, reserved) = (free >> 20, reserved >> 20);
    let text = format!(
        "{free} MiB of the file system are free, and qlog reserves {reserved} MiB for others"
    );
    Err(io::Error::new(io::ErrorKind::StorageFull, text))
}

/// The bytes that qlog leaves free on a file system of `size` bytes: a tenth, at most [`MAX_RESERVED_BYTES`].
fn reserved(size: u64) -> u64 {
    (size / 10).min(MAX_RESERVED_BYTES)
}

/// Opens the file only for this write: there are too many to keep open.
fn append(path: &PathBuf, text: &str) -> io::Result<()> {
    OpenOptions::new().create(true).append(true).open(path)?.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserve_is_a_tenth_and_at_most_a_gibibyte() {
        assert_eq!(reserved(40 << 20), 4 << 20);
        assert_eq!(reserved(1 << 40), 1 << 30);
    }
}
