//! Stores runs as they finish.
//!
//! A directory has one archive, to which each run is added. An object store has parts of an archive, written whole: a part when
//! enough runs wait, when a run has waited for a while, and at the end.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufReader, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use uncork_lab::{ARCHIVE_NAME, ArchiveIndex, FinishedRun, MANIFEST_NAME, Manifest, part_name};

use super::directory::{DirectoryError, RUNS};
use super::place::{Place, StorePrefix};
use crate::clock;
use crate::output;

/// Runs of this size become a part.
const PART: usize = 8 << 20;
/// The longest that a run waits for others of its part, or for a store that is away.
const PERIOD: Duration = Duration::from_secs(30);
/// The most bytes of runs that wait while the store is away.
const MAX_WAITING: usize = 256 << 20;

/// Adds runs to a directory or a store.
#[derive(Debug)]
pub(super) struct RunWriter {
    archive: Mutex<Archive>,
    fingerprint: String,
    _lock: Option<File>,
}

#[derive(Debug)]
enum Archive {
    File(ArchiveFile),
    Parts(ArchiveParts),
}

impl RunWriter {
    /// Creates the place of the runs with `manifest`. While the writer of a directory exists, no other process can create one.
    pub(super) fn create(results: &Place, manifest: &Manifest) -> Result<Self, DirectoryError> {
        let fingerprint = manifest.fingerprint();
        let content = manifest.to_json();
        let (archive, lock) = match results {
            Place::Directory(directory) => {
                let directory = directory.join(RUNS);
                fs::create_dir_all(&directory)?;
                let lock = lock(&directory)?;
                output::replace(&directory, MANIFEST_NAME, content.as_bytes())
                    .map_err(|error| output::of_file(&format!("{RUNS}/{MANIFEST_NAME}"), &error))?;
                (Archive::File(ArchiveFile::open(&directory)?), lock)
            }
            Place::Store(prefix) => {
                prefix.replace(&format!("{RUNS}/{MANIFEST_NAME}"), content.as_bytes())?;
                (Archive::Parts(ArchiveParts::new(prefix.clone())), None)
            }
        };
        Ok(Self { archive: Mutex::new(archive), fingerprint, _lock: lock })
    }

    /// Stores a run.
    pub(super) fn keep(&self, run: &FinishedRun) -> io::Result<()> {
        let entry = run.to_entry(&self.fingerprint);
        match &mut *self.archive.lock().unwrap_or_else(PoisonError::into_inner) {
            Archive::File(file) => file.append(&entry).map_err(|error| of_archive(&error)),
            Archive::Parts(parts) => parts.append(&entry, clock::now()),
        }
    }

    /// Makes the runs survive a power failure of this machine.
    pub(super) fn sync(&self) -> io::Result<()> {
        match &mut *self.archive.lock().unwrap_or_else(PoisonError::into_inner) {
            Archive::File(file) => file.file.sync_data().map_err(|error| of_archive(&error)),
            Archive::Parts(parts) => parts.send(),
        }
    }
}

#[derive(Debug)]
struct ArchiveFile {
    file: File,
    /// Start of the next entry. Anything beyond is a truncated entry.
    end: u64,
}

impl ArchiveFile {
    fn open(directory: &Path) -> io::Result<Self> {
        let path = directory.join(ARCHIVE_NAME);
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        let end = ArchiveIndex::of(&mut BufReader::new(&mut file))?.end;
        Ok(Self { file, end })
    }

    fn append(&mut self, entry: &[u8]) -> io::Result<()> {
        self.file.set_len(self.end)?;
        self.file.seek(SeekFrom::Start(self.end))?;
        if let Err(error) = self.file.write_all(entry) {
            // A partial entry would be reported as damage later.
            let _ = self.file.set_len(self.end);
            return Err(error);
        }
        self.end += entry.len() as u64;
        Ok(())
    }
}

fn of_archive(error: &io::Error) -> io::Error {
    output::of_file(&format!("{RUNS}/{ARCHIVE_NAME}"), error)
}

/// The runs that no object has yet.
#[derive(Debug)]
struct ArchiveParts {
    prefix: StorePrefix,
    waiting: Vec<u8>,
    /// When the first of them came, or the last write failed.
    since: Option<Instant>,
    is_away: bool,
}

impl ArchiveParts {
    fn new(prefix: StorePrefix) -> Self {
        Self { prefix, waiting: Vec::new(), since: None, is_away: false }
    }

    /// Adds a run, and writes a part if one is due. A store that is away is an error only when too much waits.
    fn append(&mut self, entry: &[u8], now: Instant) -> io::Result<()> {
        self.waiting.extend_from_slice(entry);
        let since = *self.since.get_or_insert(now);
        let age = now.saturating_duration_since(since);
        if !is_due(self.waiting.len(), age, self.is_away) {
            return Ok(());
        }
        let sent = self.send();
        if sent.is_err() && self.waiting.len() < MAX_WAITING {
            (self.since, self.is_away) = (Some(now), true);
            return Ok(());
        }
        sent
    }

    /// Writes what waits as a part.
    fn send(&mut self) -> io::Result<()> {
        if !self.waiting.is_empty() {
            self.prefix.add(&format!("{RUNS}/{}", part_name(&self.waiting)), &self.waiting)?;
        }
        self.waiting.clear();
        (self.since, self.is_away) = (None, false);
        Ok(())
    }
}

/// Whether runs of these `bytes`, the first of this `age`, are written now.
fn is_due(bytes: usize, age: Duration, is_away: bool) -> bool {
    age >= PERIOD || (bytes >= PART && !is_away) || bytes >= MAX_WAITING
}

/// A lock on a directory, released when the process ends for any reason. No effect on systems
/// without directory locks.
fn lock(directory: &Path) -> Result<Option<File>, DirectoryError> {
    let Ok(file) = File::open(directory) else { return Ok(None) };
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Err(DirectoryError::InUse),
        Err(TryLockError::Error(_)) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_is_due_by_size_or_age_and_a_store_that_is_away_gets_time() {
        let second = Duration::from_secs(1);
        assert!(!is_due(PART - 1, PERIOD / 2, false));
        assert!(is_due(PART, second, false));
        assert!(is_due(1, PERIOD, false));
        assert!(!is_due(PART, PERIOD / 2, true));
        assert!(is_due(PART, PERIOD, true));
        assert!(is_due(MAX_WAITING, second, true));
    }
}
