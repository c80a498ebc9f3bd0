//! Whether files are still what they were.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// Files that are read together.
#[derive(Debug)]
pub(super) struct Files {
    pub(super) paths: Vec<PathBuf>,
    /// What they were when they were read last.
    read: Vec<Stamp>,
    /// What they were when they were looked at last.
    seen: Vec<Stamp>,
}

/// A file's time of modification, size and inode: one that was written to or replaced has another. There
/// is none of what cannot be looked at.
type Stamp = Option<(i64, i64, u64, u64)>;

impl Files {
    /// Files that are read next: what is done to them from now on is noticed.
    pub(super) fn new(paths: Vec<PathBuf>) -> Self {
        let stamps = stamps(&paths);
        Self { paths, read: stamps.clone(), seen: stamps }
    }

    /// The same for files that are read again next.
    pub(super) fn begin(&mut self) {
        self.read = stamps(&self.paths);
        self.seen.clone_from(&self.read);
    }

    /// Whether they are not what was read, and have not changed since this was asked before: who writes
    /// to them has had that time to come to an end.
    pub(super) fn have_changed(&mut self) -> bool {
        let before = std::mem::replace(&mut self.seen, stamps(&self.paths));
        self.seen == before && self.seen != self.read
    }
}

fn stamps(files: &[PathBuf]) -> Vec<Stamp> {
    let stamp = |path: &PathBuf| {
        let it = fs::metadata(path).ok()?;
        Some((it.mtime(), it.mtime_nsec(), it.len(), it.ino()))
    };
    files.iter().map(stamp).collect()
}
