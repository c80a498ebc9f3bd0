//! The journal's files and lock.
//!
//! ```text
//! STATE/host.json        the journal of the host; host-net-COOKIE.json: of another network namespace
//! STATE/host.json.copy   the same, padded with spaces: where a full disk leaves no room, the next journal is written there
//! STATE/lock/host.lock   held by the one command that may change the host
//! ```

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::process::geteuid;
use uncork_private_files as private;
use uncork_private_files::lock::{self, Lock, LockError};

use super::super::host::HostError;
use super::super::journal::{JOURNAL_SCHEMA, Journal};
use super::{files, namespace};

/// The size of the largest journal that is read: of a policy with the most routes, and more.
const MAX_JOURNAL: u64 = 256 << 20;
/// The least room that is kept for the next journal.
const MIN_ROOM: usize = 4096;

/// The directory of the journals: one for the host, and one for each other network namespace.
#[derive(Clone, Debug)]
pub struct StateDirectory {
    directory: PathBuf,
    name: String,
}

/// Identity of a file: it changes when the file is replaced.
pub(super) type FileStamp = (u64, i64, i64, u64);

impl StateDirectory {
    /// The journal of the caller's network namespace in `directory`.
    pub fn new(directory: &Path) -> Self {
        let name = if namespace::boots() {
            "host".to_owned()
        } else {
            format!("host-net-{}", namespace::name())
        };
        let directory = private::resolved(directory).unwrap_or_else(|_| directory.to_owned());
        Self { directory, name }
    }

    /// The directory itself.
    pub fn path(&self) -> &Path {
        &self.directory
    }

    /// The name of the journal in it, without its ending.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Takes the lock: no other command may change this namespace until it is dropped. Waits for another command, at most
    /// [`lock::PATIENCE`]; `on_wait` gets the process that is waited for. Creates the directory.
    ///
    /// # Errors
    ///
    /// Another process still has it, or others than its owner may change the directory.
    pub fn lock(&self, on_wait: impl FnOnce(Option<u32>)) -> Result<Lock, HostError> {
        self.make()?;
        let locked = Lock::take(&self.lock_directory(), &self.name, lock::PATIENCE, on_wait);
        locked.map_err(|error| HostError(error.to_string()))
    }

    /// The lock, if it is free now.
    pub(super) fn try_lock(&self) -> Result<Option<Lock>, LockError> {
        Lock::try_take(&self.lock_directory(), &self.name)
    }

    /// The process that holds the lock: a command that changes the host, or tests it.
    pub fn holder(&self) -> Option<u32> {
        lock::holder(&lock::path(&self.lock_directory(), &self.name))
    }

    /// The journal of this name in the same directory.
    pub(super) fn named(&self, name: &str) -> Self {
        Self { directory: self.directory.clone(), name: name.to_owned() }
    }

    fn lock_directory(&self) -> PathBuf {
        self.directory.join("lock")
    }

    fn make(&self) -> Result<(), HostError> {
        let made = private::directory(&self.directory, 0o755);
        made.map(drop)
            .map_err(|error| HostError(format!("cannot use the state directory: {error}")))
    }

    /// Whether this user may write the journal.
    pub fn is_own(&self) -> bool {
        fs::metadata(self.file()).is_ok_and(|file| file.uid() == geteuid().as_raw())
    }

    pub(crate) fn load(&self) -> Result<Option<Journal>, HostError> {
        let file = self.file();
        let name = file.display();
        match read(&file) {
            Ok(journal) => Ok(Some(journal)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                let copy = read(&self.copy()).map_err(|_| {
                    HostError(format!(
                        "{name} is damaged: {error}\nhelp: `uncork host revert --forget` begins a new journal, and keeps all \
                         settings as they are"
                    ))
                })?;
                Ok(Some(copy))
            }
            Err(error) => Err(HostError(format!("cannot read {name}: {error}"))),
        }
    }

    /// Stores a journal: after a crash there is the old one or the new one. Of a full disk it takes the room of the copy.
    pub(crate) fn store(&self, journal: &Journal) -> Result<(), HostError> {
        self.make()?;
        let (file, copy) = (self.file(), self.copy());
        let failed = |error: &dyn std::fmt::Display| {
            HostError(format!("cannot write {}: {error}", file.display()))
        };
        let text = serde_json::to_string_pretty(journal).map_err(|error| failed(&error))? + "\n";
        let make = |new: &Path| match files::write_synced(new, &text) {
            Err(error) if is_full(&error) => {
                let _ = fs::remove_file(new);
                fs::rename(&copy, new).map_err(|_| error)?;
                overwrite(new, &text)
            }
            made => {
                made?;
                // What it holds is older than the journal is from here on.
                fs::remove_file(&copy).or_else(|error| match error.kind() {
                    io::ErrorKind::NotFound => Ok(()),
                    _ => Err(error),
                })
            }
        };
        private::replace(&file, make).map_err(|error| failed(&error))?;
        // Without it all goes on, but `is_reserved` says so.
        if write_copy(&copy, &text).is_err() {
            let _ = fs::remove_file(&copy);
        }
        Ok(())
    }

    /// Whether there is room for the next journal, however full the disk gets.
    ///
    /// # Errors
    ///
    /// There is not.
    pub(super) fn check_reserved(&self) -> Result<(), HostError> {
        if self.copy().is_file() {
            return Ok(());
        }
        let directory = self.directory.display();
        Err(HostError(format!(
            "{directory} has no room for a second journal, which a rollback needs; make room, or choose another \
             directory with --state-dir"
        )))
    }

    /// Begins a new journal, and moves the old one away, readable or not. Returns where it is now, if there was one.
    ///
    /// # Errors
    ///
    /// The directory cannot be written.
    pub fn forget(&self) -> Result<Option<PathBuf>, HostError> {
        let (file, forgotten) = (self.file(), self.with_ending("json.forgotten"));
        let failed =
            |error: io::Error| HostError(format!("cannot move {}: {error}", file.display()));
        let _ = fs::remove_file(self.copy());
        let moved = match fs::rename(&file, &forgotten) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            moved => Some(moved.map(|()| forgotten).map_err(failed)?),
        };
        self.store(&Journal::new(&namespace::boot()))?;
        Ok(moved)
    }

    /// What changes whenever the journal is replaced.
    pub(super) fn stamp(&self) -> Option<FileStamp> {
        let found = fs::symlink_metadata(self.file()).ok()?;
        Some((found.ino(), found.mtime(), found.mtime_nsec(), found.size()))
    }

    fn file(&self) -> PathBuf {
        self.with_ending("json")
    }

    fn copy(&self) -> PathBuf {
        self.with_ending("json.copy")
    }

    fn with_ending(&self, ending: &str) -> PathBuf {
        self.directory.join(format!("{}.{ending}", self.name))
    }
}

pub(super) fn read(file: &Path) -> io::Result<Journal> {
    let invalid = |reason: String| io::Error::new(io::ErrorKind::InvalidData, reason);
    let (text, stat) = private::read(file, MAX_JOURNAL, OFlags::NOFOLLOW)?;
    if let Some(reason) = private::not_trusted(&stat) {
        return Err(invalid(reason));
    }
    let mut journal: Journal = serde_json::from_str(&text)
        .map_err(|error| invalid(format!("{error}; expected {JOURNAL_SCHEMA}")))?;
    if journal.schema != JOURNAL_SCHEMA {
        return Err(invalid(format!("it is {}, expected {JOURNAL_SCHEMA}", journal.schema)));
    }
    journal.check().map_err(invalid)?;
    if journal.boot == namespace::boot_by_inode() {
        journal.boot = namespace::boot();
    }
    Ok(journal)
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Writes into the blocks that a file has, and then frees the remaining ones.
fn overwrite(file: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(file)?;
    file.write_all(text.as_bytes())?;
    file.set_len(text.len() as u64)?;
    file.sync_all()
}

/// JSON ends with any number of spaces. Undoing adds little to a journal, and reverting at most what is applied once more.
fn write_copy(file: &Path, text: &str) -> io::Result<()> {
    let room = (2 * text.len()).max(MIN_ROOM) - text.len();
    files::create(file)?.write_all((text.to_owned() + &" ".repeat(room)).as_bytes())
}
