//! Detects changes of files.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// Files that are read together.
#[derive(Debug)]
pub struct WatchedFiles {
    paths: Vec<PathBuf>,
    /// What they were when they were read last.
    read: Vec<FileStamp>,
    /// What they were when they were looked at last.
    seen: Vec<FileStamp>,
}

/// A file's modification time, size and inode, which change when the file is written or replaced.
/// `None` if the file cannot be accessed.
type FileStamp = Option<(i64, i64, u64, u64)>;

impl WatchedFiles {
    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// Takes the stamps before the files are read, so that later changes are detected.
    pub fn new(paths: Vec<PathBuf>) -> Self {
        let stamps = stamps(&paths);
        Self { paths, read: stamps.clone(), seen: stamps }
    }

    /// Watches these files from now on. Files that it watched before keep their stamps.
    pub(super) fn watch(&mut self, paths: Vec<PathBuf>) {
        let mut read = stamps(&paths);
        for (path, stamp) in paths.iter().zip(&mut read) {
            if let Some(known) = self.paths.iter().position(|it| it == path) {
                *stamp = self.read[known];
            }
        }
        *self = Self { paths, seen: read.clone(), read };
    }

    /// Takes the stamps again, before the files are read again.
    pub fn begin(&mut self) {
        self.read = stamps(&self.paths);
        self.seen.clone_from(&self.read);
    }

    /// Whether the files differ from what was read, and have not changed since the last call, so
    /// that a writer has probably finished.
    pub fn have_changed(&mut self) -> bool {
        let before = std::mem::replace(&mut self.seen, stamps(&self.paths));
        self.seen == before && self.seen != self.read
    }
}

fn stamps(files: &[PathBuf]) -> Vec<FileStamp> {
    let stamp = |path: &PathBuf| {
        let it = fs::metadata(path).ok()?;
        Some((it.mtime(), it.mtime_nsec(), it.len(), it.ino()))
    };
    files.iter().map(stamp).collect()
}
