//! The journal's file and lock.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::super::host::HostError;
use super::super::journal::{JOURNAL_SCHEMA, Journal};
use super::files;
use crate::collect::is_initial;

const OWN: &str = "/proc/thread-self/ns/net";
/// Each namespace has such a file with an inode of its own, which everybody may see: the caller's, and that of
/// the process that boots this host or container.
const OWN_DEVICES: &str = "/proc/thread-self/net/dev";
const BOOT_DEVICES: &str = "/proc/1/net/dev";

/// The directory of the journals: one for the host, and one for each other network namespace.
#[derive(Clone, Debug)]
pub struct StateDirectory {
    directory: PathBuf,
    name: String,
}

/// Held by the one command that may change the host.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "held until it is dropped")] File);

impl Lock {
    /// The lock of a file that is locked. Its text is the process that holds it, for the guard; without it, a full disk, say,
    /// the guard waits.
    fn held(mut file: File) -> Self {
        let _ = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
        Self(file)
    }
}

impl StateDirectory {
    /// The journal of the caller's network namespace in `directory`.
    pub fn new(directory: &Path) -> Self {
        let name = match inode(OWN) {
            Some(inode) if !is_boot_namespace() => format!("host-net-{inode}"),
            _ => "host".to_owned(),
        };
        let directory = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
        Self { directory, name }
    }

    /// The directory itself.
    pub fn path(&self) -> &Path {
        &self.directory
    }

    /// Waits until no other command changes this namespace. Creates the directory.
    ///
    /// # Errors
    ///
    /// The directory cannot be written.
    pub fn lock(&self) -> Result<Lock, HostError> {
        let file = self.lock_file()?;
        let locked = flock(&file, FlockOperation::LockExclusive);
        locked.map(|()| Lock::held(file)).map_err(|error| self.unwritable(&error.into()))
    }

    /// [`Self::lock`], if no other command changes this namespace now.
    ///
    /// # Errors
    ///
    /// The directory cannot be written.
    pub fn try_lock(&self) -> Result<Option<Lock>, HostError> {
        let file = self.lock_file()?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Lock::held(file))),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(self.unwritable(&error.into())),
        }
    }

    /// The process that took the lock last.
    pub(super) fn holder(&self) -> Option<u32> {
        fs::read_to_string(self.lock_path()).ok()?.trim_end().parse().ok()
    }

    fn lock_path(&self) -> PathBuf {
        self.directory.join(format!("{}.lock", self.name))
    }

    fn lock_file(&self) -> Result<File, HostError> {
        let open = || {
            fs::create_dir_all(&self.directory)?;
            OpenOptions::new().create(true).append(true).open(self.lock_path())
        };
        open().map_err(|error| self.unwritable(&error))
    }

    fn unwritable(&self, error: &io::Error) -> HostError {
        let directory = self.directory.display();
        HostError(format!(
            "cannot write to {directory}: {error}; choose another directory with --state-dir"
        ))
    }

    pub(crate) fn load(&self) -> Result<Option<Journal>, HostError> {
        let file = self.file();
        let name = file.display();
        let text = match fs::read_to_string(&file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read.map_err(|error| HostError(format!("cannot read {name}: {error}")))?,
        };
        let journal: Journal = serde_json::from_str(&text).map_err(|error| {
            HostError(format!("{name} is not a journal: {error}; expected {JOURNAL_SCHEMA}"))
        })?;
        if journal.schema != JOURNAL_SCHEMA {
            let schema = journal.schema;
            return Err(HostError(format!("{name} is {schema}, expected {JOURNAL_SCHEMA}")));
        }
        Ok(Some(journal))
    }

    pub(crate) fn store(&self, journal: &Journal) -> Result<(), HostError> {
        let file = self.file();
        let failed = |error: &dyn std::fmt::Display| {
            HostError(format!("cannot write {}: {error}", file.display()))
        };
        let text = serde_json::to_string_pretty(journal).map_err(|error| failed(&error))?;
        files::replace(&file, |new| files::write_synced(new, &(text + "\n")))
            .map_err(|error| failed(&error))
    }

    fn file(&self) -> PathBuf {
        self.directory.join(format!("{}.json", self.name))
    }
}

/// Whether the caller is in the network namespace that the boot configures. Who may not see process 1 (`hidepid`)
/// asks whether the namespace is the initial one.
pub(super) fn is_boot_namespace() -> bool {
    if let (Some(own), Some(boots)) = (inode(OWN_DEVICES), inode(BOOT_DEVICES)) {
        return own == boots;
    }
    is_initial()
}

fn inode(file: &str) -> Option<u64> {
    fs::metadata(file).ok().map(|found| found.ino())
}

/// A name for this boot of the host or container, and this network namespace.
pub(super) fn boot() -> String {
    let read = |file| fs::read_to_string(file).unwrap_or_default();
    let boot = read("/proc/sys/kernel/random/boot_id");
    // Field 22: when process 1 started. A container that starts again has the host's boot ID.
    let stat = read("/proc/1/stat");
    let after_name = stat.rsplit_once(')').map_or("", |(_, after)| after);
    let started = after_name.split_ascii_whitespace().nth(19).unwrap_or_default();
    format!("{} {started} net:{}", boot.trim(), inode(OWN).unwrap_or(0))
}
