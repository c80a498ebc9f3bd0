//! A file that is served: what identifies this state of it, and reading it.

use std::io::{self, IoSliceMut};
use std::os::fd::OwnedFd;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::HeaderValue;
use rustix::fs::{FileType, Stat, fstat};
use rustix::io::{Errno, ReadWriteFlags, pread, preadv2};

use super::pooled_buffer::PooledBuffer;
use super::root::Found;

/// An open file. A new file of the same name is another one, this one stays readable.
#[derive(Debug)]
pub(super) struct ServedFile {
    file: OwnedFd,
    state: State,
}

/// What changes when the content does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    inode: u64,
    length: u64,
    modified: (i64, u32),
}

impl State {
    fn of(stat: &Stat) -> Self {
        Self {
            inode: stat.st_ino,
            length: stat.st_size as u64,
            modified: (stat.st_mtime, stat.st_mtime_nsec as u32),
        }
    }
}

impl ServedFile {
    pub(super) fn identify(file: OwnedFd) -> io::Result<Found> {
        let stat = fstat(&file)?;
        Ok(match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Found::File(Self { file, state: State::of(&stat) }),
            FileType::Directory => Found::Directory,
            _ => Found::Nothing,
        })
    }

    pub(super) fn len(&self) -> u64 {
        self.state.length
    }

    /// To the second, as HTTP has it.
    pub(super) fn modified(&self) -> SystemTime {
        let seconds = u64::try_from(self.state.modified.0).unwrap_or(0);
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    pub(super) fn is_as_new_as(&self, other: &Self) -> bool {
        self.state.modified >= other.state.modified
    }

    /// A strong validator (RFC 9110 §8.8.1): content that changes gives the file a new time of
    /// modification, whose nanoseconds are in it.
    pub(super) fn etag(&self) -> Option<HeaderValue> {
        let State { inode, length, modified: (seconds, nanos) } = self.state;
        HeaderValue::try_from(format!("\"{inode:x}-{length:x}-{seconds:x}.{nanos:x}\"")).ok()
    }

    /// Reads what is in memory already; `None` when reading would wait for a disk.
    pub(super) fn read_now(&self, at: u64, length: usize) -> Option<io::Result<Bytes>> {
        let mut room = PooledBuffer::new(length);
        let mut slices = [IoSliceMut::new(room.bytes())];
        match preadv2(&self.file, &mut slices, at, ReadWriteFlags::NOWAIT) {
            // Not in memory; or the file system cannot tell (tmpfs of older kernels, FUSE).
            Err(Errno::AGAIN | Errno::OPNOTSUPP | Errno::INTR | Errno::NOSYS) => None,
            Err(errno) => Some(Err(errno.into())),
            Ok(read) => Some(self.checked(room, read)),
        }
    }

    /// Reads, however long it takes.
    pub(super) fn read(&self, at: u64, length: usize) -> io::Result<Bytes> {
        let mut room = PooledBuffer::new(length);
        let read = rustix::io::retry_on_intr(|| pread(&self.file, room.bytes(), at))?;
        self.checked(room, read)
    }

    /// What was read, if the file is still what the response's head said: half of an old and half of
    /// a new content must not look like a whole.
    fn checked(&self, room: PooledBuffer, read: usize) -> io::Result<Bytes> {
        if read == 0 || State::of(&fstat(&self.file)?) != self.state {
            return Err(io::Error::other("the file was changed while it was sent"));
        }
        Ok(room.filled(read))
    }
}
