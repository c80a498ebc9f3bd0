//! Locks: one process at a time changes a thing.
//!
//! flock(2) needs no right to write: a user who may open a file may lock it. So a lock is a file that only its owner may
//! open, in a directory that only its owner may open.

use std::fs;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::fs::{FileType, FlockOperation, Mode, OFlags, flock, fstat, openat};
use rustix::io::Errno;
use thiserror::Error;

use crate::private;

/// Where locks are that belong to no directory of the user's.
pub const LOCKS: &str = "/run/uncork/lock";
/// How long a command waits for another one.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// How often it looks whether the lock is free. flock(2) itself waits without end.
const TURN: Duration = Duration::from_millis(50);

/// A lock that this process holds until this value is dropped.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "held until it is dropped")] File);

/// Why a lock cannot be had.
#[derive(Debug, Error)]
pub enum LockError {
    /// Another process has it.
    #[error("cannot lock {}: {} holds it{}\nhelp: try again when that has ended", .path.display(), holder_text(*.holder), waited_text(*.waited))]
    Held {
        /// The file.
        path: PathBuf,
        /// The process, if this one can see it.
        holder: Option<u32>,
        /// How long this process has waited.
        waited: Duration,
    },
    /// The file cannot be made or opened, or others may open it.
    #[error("cannot lock {}: {reason}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason, and the remedy.
        reason: String,
    },
}

/// A process that holds a lock, as a subject.
pub fn holder_text(holder: Option<u32>) -> String {
    holder.map_or_else(|| "another process".to_owned(), |process| format!("process {process}"))
}

fn waited_text(waited: Duration) -> String {
    if waited.is_zero() { String::new() } else { format!("; waited {} s", waited.as_secs()) }
}

impl Lock {
    /// Takes the lock `NAME.lock` in `directory`, which is made if it does not exist. Waits for another process, for
    /// `patience` at most; `on_wait` gets the process that is waited for.
    ///
    /// # Errors
    ///
    /// Another process still has it, or the file is not private.
    pub fn take(
        directory: &Path,
        name: &str,
        patience: Duration,
        on_wait: impl FnOnce(Option<u32>),
    ) -> Result<Self, LockError> {
        let mut waited = Duration::ZERO;
        let mut on_wait = Some(on_wait);
        loop {
            if let Some(lock) = Self::try_take(directory, name)? {
                return Ok(lock);
            }
            let holder = holder(&path(directory, name));
            if waited >= patience {
                return Err(LockError::Held { path: path(directory, name), holder, waited });
            }
            if let Some(on_wait) = on_wait.take() {
                on_wait(holder);
            }
            thread::sleep(TURN);
            waited += TURN;
        }
    }

    /// [`Self::take`], if it is free now.
    ///
    /// # Errors
    ///
    /// The file is not private.
    pub fn try_take(directory: &Path, name: &str) -> Result<Option<Self>, LockError> {
        let failed = |error: io::Error| LockError::File {
            path: path(directory, name),
            reason: error.to_string(),
        };
        let file = open(directory, name).map_err(failed)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Self(file))),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(failed(error.into())),
        }
    }
}

/// The file of the lock `NAME` in `directory`.
pub fn path(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{name}.lock"))
}

fn open(directory: &Path, name: &str) -> io::Result<File> {
    let at = private::directory(directory, 0o700)?;
    let name = format!("{name}.lock");
    // Nothing waits for the other end of a fifo.
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let mode = Mode::from_raw_mode(0o600);
    let file: OwnedFd = match openat(&at, &*name, flags | OFlags::CREATE, mode) {
        // On a read-only file system, a lock that is there can be taken.
        Err(Errno::ROFS) => openat(&at, &*name, flags & !OFlags::RDWR, mode)?,
        Err(Errno::LOOP | Errno::ISDIR) => return Err(unlike("a regular file")),
        opened => opened?,
    };
    let stat = fstat(&file)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(unlike("a regular file"));
    }
    match private::not_private(&stat, 0o600) {
        Some(reason) => Err(io::Error::other(reason)),
        None => Ok(file.into()),
    }
}

fn unlike(what: &str) -> io::Error {
    io::Error::other(format!("it is not {what}; remove it"))
}

/// The process that holds an flock(2) lock of a file or directory now, if this one can see it.
pub fn holder(path: &Path) -> Option<u32> {
    let file = fs::metadata(path).ok()?;
    let locks = fs::read_to_string("/proc/locks").ok()?;
    let has_open = |process: &u32| {
        // That of a process with more rights cannot be read.
        let Ok(opened) = fs::read_dir(format!("/proc/{process}/fd")) else { return true };
        let mut opened = opened.flatten().filter_map(|entry| fs::metadata(entry.path()).ok());
        opened.any(|open| (open.dev(), open.ino()) == (file.dev(), file.ino()))
    };
    holders(&locks, file.ino()).find(has_open)
}

/// The processes that hold an flock(2) lock of a file with this inode, by proc_locks(5). Not the device: btrfs gives
/// another one there than stat(2) does.
fn holders(locks: &str, inode: u64) -> impl Iterator<Item = u32> {
    locks.lines().filter_map(move |line| {
        // `1: FLOCK  ADVISORY  WRITE 27915 00:2a:1234 0 EOF`; a process that waits has `->` behind the number.
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, "FLOCK", _, _, process, file, ..] = words[..] else { return None };
        let (_, found) = file.rsplit_once(':')?;
        // A process of another namespace has the number 0 (or less).
        let process = || process.parse().ok().filter(|process| *process > 0);
        (found.parse() == Ok(inode)).then(process).flatten()
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use rustix::fs::{CWD, mknodat};
    use uncork_testkit::Scratch;

    #[test]
    fn a_lock_is_for_one_and_its_file_for_its_owner() {
        let scratch = Scratch::new("lock");
        let directory = scratch.path("lock");
        let lock = Lock::try_take(&directory, "one").unwrap().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!((mode(&directory), mode(&directory.join("one.lock"))), (0o700, 0o600));
        assert!(Lock::try_take(&directory, "one").unwrap().is_none());
        assert!(Lock::try_take(&directory, "other").unwrap().is_some());
        assert_eq!(holder(&path(&directory, "one")), Some(std::process::id()));
        drop(lock);
        assert_eq!(holder(&path(&directory, "one")), None);
        assert!(Lock::try_take(&directory, "one").unwrap().is_some());
    }

    #[test]
    fn waiting_ends_and_names_the_process() {
        let scratch = Scratch::new("lock-wait");
        let directory = scratch.path("lock");
        let _lock = Lock::try_take(&directory, "one").unwrap().unwrap();
        let mut waited_for = None;
        let patience = Duration::from_millis(60);
        let error = Lock::take(&directory, "one", patience, |process| waited_for = Some(process))
            .unwrap_err();
        assert_eq!(waited_for, Some(Some(std::process::id())));
        let text = error.to_string();
        assert!(text.contains(&format!("process {} holds it", std::process::id())), "{text}");
    }

    #[test]
    fn what_is_not_a_private_file_is_refused_and_left_as_it_is() {
        let scratch = Scratch::new("lock-odd");
        let directory = scratch.path("lock");
        drop(Lock::try_take(&directory, "one").unwrap());
        let victim = scratch.path("victim");
        fs::write(&victim, "precious").unwrap();
        symlink(&victim, directory.join("link.lock")).unwrap();
        fs::create_dir(directory.join("directory.lock")).unwrap();
        fs::write(directory.join("open.lock"), "").unwrap();
        let fifo = directory.join("fifo.lock");
        mknodat(CWD, &fifo, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        for name in ["link", "directory", "open", "fifo"] {
            let error = Lock::try_take(&directory, name).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains("it"), "{error}");
        }
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    }

    #[test]
    fn holders_exclude_waiting_processes() {
        let text = "1: FLOCK  ADVISORY  WRITE 311 00:2a:77 0 EOF\n\
                    1: -> FLOCK  ADVISORY  WRITE 312 00:2a:77 0 EOF\n\
                    2: POSIX  ADVISORY  WRITE 313 00:2a:77 0 EOF\n\
                    3: FLOCK  ADVISORY  WRITE 314 00:2a:78 0 EOF\n\
                    4: FLOCK  ADVISORY  WRITE 0 00:2a:79 0 EOF\n\
                    damaged\n";
        assert_eq!(holders(text, 77).collect::<Vec<_>>(), [311]);
        assert_eq!(holders(text, 79).next(), None);
    }
}
