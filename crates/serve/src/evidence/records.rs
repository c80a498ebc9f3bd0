//! Flow records into a file, on a thread of their own: no response waits for a disk.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use uncork_flow::{FileError, FlowRecord, write_json_lines};

use crate::error::ServeError;

/// How many records may wait to be written.
const ROOM: usize = 4096;

/// Where responses leave their records.
#[derive(Clone, Debug)]
pub(crate) struct Records {
    queue: SyncSender<FlowRecord>,
    lost: Arc<AtomicU64>,
}

/// The thread that writes them. It ends when nobody can leave a record any more.
#[derive(Debug)]
pub(crate) struct Writer {
    thread: JoinHandle<Result<u64, FileError>>,
    lost: Arc<AtomicU64>,
    path: PathBuf,
}

/// What became of the records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordsSummary {
    /// Lines written.
    pub written: u64,
    /// Records that found no room, because the disk was too slow.
    pub lost: u64,
}

impl Records {
    /// Appends to the file at `path`, which is created if need be.
    pub(crate) fn append(path: &Path) -> Result<(Self, Writer), ServeError> {
        let failed = |error| ServeError::Records(path.to_owned(), error);
        let file = OpenOptions::new().append(true).create(true).open(path).map_err(failed)?;
        let (queue, received) = sync_channel(ROOM);
        let lost = Arc::new(AtomicU64::new(0));
        let named = thread::Builder::new().name("records".to_owned());
        let thread = named.spawn(move || write(&received, file)).map_err(failed)?;
        let writer = Writer { thread, lost: Arc::clone(&lost), path: path.to_owned() };
        Ok((Self { queue, lost }, writer))
    }

    pub(super) fn leave(&self, record: FlowRecord) {
        if self.queue.try_send(record).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Writer {
    /// Waits for the last record. All [`Records`] must be gone.
    pub(crate) fn end(self) -> Result<RecordsSummary, ServeError> {
        let ended = self.thread.join();
        let ended = ended.unwrap_or_else(|_| Err(io::Error::other("its thread failed").into()));
        match ended {
            Ok(written) => Ok(RecordsSummary { written, lost: self.lost.load(Ordering::Relaxed) }),
            Err(FileError::Io(error)) => Err(ServeError::Records(self.path, error)),
            Err(error) => Err(ServeError::Records(self.path, io::Error::other(error))),
        }
    }
}

/// Writes what comes. Whenever nothing more waits, the file has all of it.
fn write(received: &Receiver<FlowRecord>, file: File) -> Result<u64, FileError> {
    let mut out = BufWriter::new(file);
    let mut written = 0;
    while let Ok(first) = received.recv() {
        let mut next = Some(first);
        while let Some(record) = next {
            write_json_lines(&mut out, [&record])?;
            written += 1;
            next = received.try_recv().ok();
        }
        out.flush()?;
    }
    Ok(written)
}
