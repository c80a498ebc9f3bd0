//! The directory that is served, and nothing outside of it.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, fstat, open, openat2, statat};
use rustix::io::Errno;

use super::file::{ServedFile, State};
use super::open_files::OpenFiles;
use super::small_files::SmallFiles;
use crate::error::ServeError;

/// How often a lookup is tried that a concurrent renaming has disturbed.
const TRIES: usize = 32;

/// A directory that was opened once: it stays the same one when its name goes to another.
#[derive(Debug)]
pub(super) struct Root {
    directory: OwnedFd,
    small: SmallFiles,
}

/// What a path below the root leads to.
#[derive(Debug)]
pub(super) enum Found {
    File(Arc<ServedFile>),
    Directory,
    /// Nothing, or nothing that is served: a device, a pipe, a link out of the root.
    Nothing,
    /// It exists, but its owner keeps it from this process.
    Forbidden,
}

impl Root {
    pub(super) fn open(path: &Path) -> Result<Self, ServeError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = open(path, flags, Mode::empty())
            .map_err(|errno| ServeError::Root(path.to_owned(), errno.into()))?;
        let root = Self { directory, small: SmallFiles::default() };
        match root.open_beneath(".", OFlags::DIRECTORY) {
            Err(Errno::NOSYS | Errno::PERM) => Err(ServeError::NoOpenat2),
            Err(errno) => Err(ServeError::Root(path.to_owned(), errno.into())),
            Ok(_) => Ok(root),
        }
    }

    #[cfg(test)]
    pub(super) fn small(&self) -> &SmallFiles {
        &self.small
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        let [one, two] = [self, other].map(|root| fstat(&root.directory));
        matches!((one, two), (Ok(one), Ok(two)) if (one.st_dev, one.st_ino) == (two.st_dev, two.st_ino))
    }

    /// Looks up names separated by `/`.
    pub(super) fn find(
        self: &Arc<Self>,
        path: &str,
        files: &Arc<OpenFiles>,
        now: SystemTime,
    ) -> io::Result<Found> {
        let path = if path.is_empty() { "." } else { path };
        if let Some(file) = self.small.get(path, now, || self.state(path)) {
            return Ok(Found::File(file));
        }
        match self.open_file(path) {
            Ok(descriptor) => self.identify(path, files, descriptor, now),
            Err(Errno::ACCESS | Errno::PERM) => Ok(Found::Forbidden),
            // XDEV: out of the root. LOOP: a magic link, or links in a circle. NXIO: a socket.
            Err(
                Errno::NOENT
                | Errno::NOTDIR
                | Errno::XDEV
                | Errno::LOOP
                | Errno::NAMETOOLONG
                | Errno::NXIO
                | Errno::INVAL,
            ) => Ok(Found::Nothing),
            Err(errno) => Err(errno.into()),
        }
    }

    /// What `descriptor` is, which was found as `path`.
    fn identify(
        self: &Arc<Self>,
        path: &str,
        files: &Arc<OpenFiles>,
        descriptor: OwnedFd,
        now: SystemTime,
    ) -> io::Result<Found> {
        let stat = fstat(&descriptor)?;
        let state = State::of(&stat);
        Ok(match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Found::File(
                self.small
                    .load(path, files, (&descriptor, state), now)
                    .unwrap_or_else(|| files.share((self, path), descriptor, state)),
            ),
            FileType::Directory => Found::Directory,
            _ => Found::Nothing,
        })
    }

    /// The state of what `path` leads to, which may be outside of the root: good only to compare it with
    /// that of a file that was found inside.
    fn state(&self, path: &str) -> Option<State> {
        let stat = statat(&self.directory, path, AtFlags::NO_AUTOMOUNT).ok()?;
        Some(State::of(&stat))
    }

    /// Opens for reading. Who opens a pipe must not wait for its other end.
    pub(super) fn open_file(&self, path: &str) -> Result<OwnedFd, Errno> {
        self.open_beneath(path, OFlags::NONBLOCK | OFlags::NOCTTY)
    }

    /// openat2(2): the kernel resolves `..`, links and renamed directories, and lets none lead out.
    fn open_beneath(&self, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        let flags = flags | OFlags::RDONLY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let mut last = Errno::AGAIN;
        for _ in 0..TRIES {
            match openat2(&self.directory, path, flags, Mode::empty(), resolve) {
                Err(errno @ (Errno::AGAIN | Errno::INTR)) => last = errno,
                done => return done,
            }
        }
        Err(last)
    }
}
