//! A file that is served: what identifies this state of it, and reading it.

use std::io::{self, IoSliceMut};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::HeaderValue;
use rustix::fs::{Stat, fstat};
use rustix::io::{Errno, ReadWriteFlags, pread, preadv2};

use super::open_files::OpenFiles;
use super::pooled_buffer::PooledBuffer;
use super::representation::content_type;
use super::root::Root;

/// A state of a file. A new file of the same name is another one, this one stays readable.
#[derive(Debug)]
pub(super) struct ServedFile {
    state: State,
    source: Source,
    path: Box<str>,
    files: Arc<OpenFiles>,
    /// Closed while descriptors are scarce and no response reads it.
    descriptor: Mutex<Option<Arc<OwnedFd>>>,
    was_read: AtomicBool,
    heads: OnceLock<Heads>,
}

/// Where its content comes from.
#[derive(Debug)]
pub(super) enum Source {
    /// All of it is here.
    Memory(Bytes),
    /// The directory below which it was found.
    Disk(Arc<Root>),
}

/// Values of headers, which are the same in all responses with the file.
#[derive(Debug)]
pub(super) struct Heads {
    pub(super) content_type: HeaderValue,
    pub(super) etag: Option<HeaderValue>,
    pub(super) modified: Option<HeaderValue>,
}

/// What changes when the content does, or may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct State {
    content: FileContent,
    /// The last change of content or of anything below. No program can set it back.
    changed: (i64, u32),
    mode: u32,
    owner: (u32, u32),
    links: u64,
}

/// Properties that change if a program changes a file in place, unless the program restores the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct FileContent {
    device: u64,
    inode: u64,
    length: u64,
    modified: (i64, u32),
}

impl State {
    #[allow(
        clippy::useless_conversion,
        reason = "the types of `Stat` differ between architectures"
    )]
    pub(super) fn of(stat: &Stat) -> Self {
        Self {
            content: FileContent {
                device: stat.st_dev,
                inode: stat.st_ino,
                length: stat.st_size as u64,
                modified: (stat.st_mtime, stat.st_mtime_nsec as u32),
            },
            changed: (stat.st_ctime, stat.st_ctime_nsec as u32),
            mode: stat.st_mode,
            owner: (stat.st_uid, stat.st_gid),
            links: stat.st_nlink.into(),
        }
    }

    pub(super) fn len(&self) -> u64 {
        self.content.length
    }

    /// Whether the last change was at least `span` before `now`.
    pub(super) fn is_older_than(&self, span: Duration, now: SystemTime) -> bool {
        let (seconds, nanos) = self.changed.max(self.content.modified);
        let changed = Duration::new(u64::try_from(seconds).unwrap_or(0), nanos);
        let age = now.duration_since(SystemTime::UNIX_EPOCH + changed);
        age.is_ok_and(|age| age >= span)
    }

    /// Whether something else than content explains that the time of change is another.
    fn differs_otherwise(&self, other: &Self) -> bool {
        (self.mode, self.owner, self.links) != (other.mode, other.owner, other.links)
    }
}

impl ServedFile {
    pub(super) fn new(
        state: State,
        (source, path): (Source, &str),
        files: &Arc<OpenFiles>,
    ) -> Arc<Self> {
        Arc::new(Self {
            state,
            source,
            path: path.into(),
            files: Arc::clone(files),
            descriptor: Mutex::default(),
            was_read: AtomicBool::new(false),
            heads: OnceLock::new(),
        })
    }

    /// Reads from `descriptor` if it was closed; whether it was.
    pub(super) fn open_with(&self, descriptor: OwnedFd) -> bool {
        let mut open = self.descriptor();
        let was_closed = open.is_none();
        if was_closed {
            *open = Some(Arc::new(descriptor));
        }
        was_closed
    }

    /// Holds no descriptor until it is read again.
    pub(super) fn close(&self) {
        *self.descriptor() = None;
    }

    /// Whether it was read since this was asked last.
    pub(super) fn was_read(&self) -> bool {
        self.was_read.swap(false, Ordering::Relaxed)
    }

    fn descriptor(&self) -> MutexGuard<'_, Option<Arc<OwnedFd>>> {
        self.descriptor.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file, which is opened if it was closed.
    fn open(self: &Arc<Self>) -> io::Result<Arc<OwnedFd>> {
        self.was_read.store(true, Ordering::Relaxed);
        if let Some(open) = &*self.descriptor() {
            return Ok(Arc::clone(open));
        }
        let new = Arc::new(self.find_again()?);
        *self.descriptor() = Some(Arc::clone(&new));
        self.files.opened(self);
        Ok(new)
    }

    fn find_again(&self) -> Result<OwnedFd, Errno> {
        match &self.source {
            Source::Memory(_) => Err(Errno::NOENT),
            Source::Disk(root) => root.open_file(&self.path),
        }
    }

    /// Its content, if that is in memory.
    pub(super) fn content(&self) -> Option<&Bytes> {
        match &self.source {
            Source::Memory(content) => Some(content),
            Source::Disk(_) => None,
        }
    }

    pub(super) fn state(&self) -> &State {
        &self.state
    }

    pub(super) fn len(&self) -> u64 {
        self.state.len()
    }

    /// What responses say of it.
    pub(super) fn heads(&self) -> &Heads {
        self.heads.get_or_init(|| Heads {
            content_type: content_type(&self.path),
            etag: self.etag(None),
            modified: HeaderValue::try_from(httpdate::fmt_http_date(self.modified())).ok(),
        })
    }

    /// To the second, as HTTP has it.
    pub(super) fn modified(&self) -> SystemTime {
        let seconds = u64::try_from(self.state.content.modified.0).unwrap_or(0);
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    pub(super) fn is_as_new_as(&self, other: &Self) -> bool {
        self.state.content.modified >= other.state.content.modified
    }

    /// A strong validator (RFC 9110 §8.8.1) of the file, which has this content coding: it has the time of modification in
    /// nanoseconds, which changes with the content. All servers with the same file give the same.
    pub(super) fn etag(&self, coding: Option<&str>) -> Option<HeaderValue> {
        let FileContent { length, modified: (seconds, nanos), .. } = self.state.content;
        let coding = coding.map_or_else(String::new, |coding| format!("-{coding}"));
        HeaderValue::try_from(format!("\"{length:x}-{seconds:x}.{nanos:x}{coding}\"")).ok()
    }

    /// Reads what is in memory already; `None` when reading would wait for a disk.
    pub(super) fn read_now(self: &Arc<Self>, at: u64, length: usize) -> Option<io::Result<Bytes>> {
        let file = match self.open() {
            Ok(file) => file,
            Err(error) => return Some(Err(error)),
        };
        let mut room = PooledBuffer::new(length);
        let mut slices = [IoSliceMut::new(room.bytes())];
        match preadv2(&file, &mut slices, at, ReadWriteFlags::NOWAIT) {
            // Not in memory; or the file system does not report it (tmpfs of older kernels, FUSE).
            Err(Errno::AGAIN | Errno::OPNOTSUPP | Errno::INTR | Errno::NOSYS) => None,
            Err(errno) => Some(Err(errno.into())),
            Ok(read) => Some(self.checked(&file, room, read)),
        }
    }

    /// Reads, however long it takes.
    pub(super) fn read(self: &Arc<Self>, at: u64, length: usize) -> io::Result<Bytes> {
        let file = self.open()?;
        let mut room = PooledBuffer::new(length);
        let read = rustix::io::retry_on_intr(|| pread(&file, room.bytes(), at))?;
        self.checked(&file, room, read)
    }

    /// What was read, if the file is still what the response's head said: half of an old and half of
    /// a new content must not look like a whole.
    fn checked(&self, file: &OwnedFd, room: PooledBuffer, read: usize) -> io::Result<Bytes> {
        if read == 0 || !self.is_intact(&State::of(&fstat(file)?)) {
            return Err(io::Error::other("the file was changed while it was sent"));
        }
        Ok(room.filled(read))
    }

    /// Whether a file in this state has the same content. Where only the time of change is another, the content was
    /// written to and the time of modification put back, unless something else was done to the file: its owner or
    /// mode were changed, a link to it was made or removed, it was renamed.
    fn is_intact(&self, now: &State) -> bool {
        let is_unchanged = now.changed == self.state.changed;
        now.content == self.state.content
            && (is_unchanged || now.differs_otherwise(&self.state) || self.has_moved())
    }

    /// Whether its path leads elsewhere now.
    fn has_moved(&self) -> bool {
        let stat = self.find_again().and_then(fstat);
        stat.map_or(true, |stat| State::of(&stat).content.inode != self.state.content.inode)
    }
}

impl Drop for ServedFile {
    fn drop(&mut self) {
        self.files.forget(&self.state);
    }
}
