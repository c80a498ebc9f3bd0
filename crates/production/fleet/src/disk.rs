//! Versions on a host's disk: whole directories, and a link to the one active.
//!
//! ```text
//! DIR/current                          a link to the active version
//! DIR/versions/0000000007-SHA256/      policy.toml, its table, and the bundle that they come from
//! DIR/private/agent.json               what was accepted; mode 0600
//! DIR/private/agent.lock               held while an agent runs
//! ```
//!
//! The layout is that of `uncork learn`, so what follows its link follows this one. A version is written under another name, flushed
//! to the disk and renamed; then the link is replaced by renaming. So at each moment the link leads to a whole version.

use std::cell::RefCell;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::OFlags;
use uncork_policy::{PublicKey, sha256};
use uncork_private_files::lock::{Lock, LockError};
use uncork_private_files::{directory, not_private, read, rename_flushed, replace};

use crate::bundle::RESERVED;
use crate::{ActiveVersion, Bundle, Memory, PackedFile};

/// A version that is not whole yet.
const NEW: &str = ".new";
/// The link to the active version.
const CURRENT: &str = "current";
const VERSIONS: &str = "versions";
const PRIVATE: &str = "private";
const MEMORY: &str = "agent.json";
const MAX_MEMORY: u64 = 64 * 1024;
/// The group may read: servers and the units of `steer` and routes.
const DIRECTORY_MODE: u32 = 0o750;
const FILE_MODE: u32 = 0o640;
/// Versions that stay: the one active, and those to which an operator may want to look back.
const KEPT: usize = 3;

/// A hook before each change of the disk, for tests: an error is the end of the process there.
pub struct Steps(Box<dyn Fn(&'static str) -> io::Result<()> + Send>);

impl Steps {
    /// Calls this with the name of each step.
    pub fn new(hook: impl Fn(&'static str) -> io::Result<()> + Send + 'static) -> Self {
        Self(Box::new(hook))
    }
}

impl Default for Steps {
    fn default() -> Self {
        Self::new(|_| Ok(()))
    }
}

/// A directory with versions.
pub struct Disk {
    root: PathBuf,
    steps: Steps,
    /// The last look at the active version: a large one is not verified at each poll.
    looked: RefCell<Option<(Stamp, Current)>>,
}

/// Which link and which files were looked at, by what the file system says of them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stamp {
    linked: Option<String>,
    since_unix_s: u64,
    files: Vec<(String, u64, u64, i64, i64)>,
}

/// What the link leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Current {
    /// The link does not exist.
    Nothing,
    /// The host's default, with the SHA-256 of its policy.
    Default(String),
    /// A version that is as it was signed.
    Version(ActiveVersion),
    /// Files that are not as they were signed, or not readable.
    Damaged(String),
}

impl Disk {
    /// The versions in a directory.
    pub fn new(root: &Path, steps: Steps) -> Self {
        Self { root: root.to_owned(), steps, looked: RefCell::new(None) }
    }

    /// The active policy.
    pub fn policy(&self) -> PathBuf {
        self.root.join(CURRENT).join(crate::POLICY)
    }

    /// Makes the directories, takes the lock of agents, and removes what a killed one has left: it may fill the disk.
    ///
    /// # Errors
    ///
    /// Another agent has it, or others may change the directory.
    pub fn lock(&self) -> Result<Lock, LockError> {
        let made = directory(&self.root, DIRECTORY_MODE)
            .and_then(|_| directory(&self.root.join(VERSIONS), DIRECTORY_MODE));
        made.map_err(|error| LockError::File {
            path: self.root.clone(),
            reason: error.to_string(),
        })?;
        let lock = Lock::take(&self.root.join(PRIVATE), "agent", Duration::ZERO, |_| ())?;
        // If it cannot be removed, the next version says so.
        let _ = fs::remove_dir_all(self.new_version());
        Ok(lock)
    }

    /// What was accepted. Nothing was, if the file does not exist.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is not private: it may have said that a version is old.
    pub(crate) fn memory(&self) -> io::Result<Memory> {
        let (text, stat) = match read(&self.memory_file(), MAX_MEMORY, OFlags::NOFOLLOW) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Memory::default()),
            read => read?,
        };
        match not_private(&stat, 0o600) {
            Some(reason) => Err(io::Error::new(ErrorKind::PermissionDenied, reason)),
            None => Ok(serde_json::from_str(&text)?),
        }
    }

    /// Notes what was accepted.
    pub(crate) fn save(&self, memory: &Memory) -> io::Result<()> {
        let text = serde_json::to_string(memory)? + "\n";
        self.step("write agent.json")?;
        replace(&self.memory_file(), |new| {
            write(new, text.as_bytes(), 0o600)?;
            self.step("rename agent.json")
        })
    }

    pub(crate) fn memory_file(&self) -> PathBuf {
        self.root.join(PRIVATE).join(MEMORY)
    }

    /// What is active, by the files themselves.
    pub(crate) fn current(&self, keys: &[PublicKey]) -> Current {
        let link = self.root.join(CURRENT);
        let stamp = match self.stamp(&link) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Current::Nothing,
            Err(error) => return Current::Damaged(format!("{}: {error}", link.display())),
            Ok(stamp) => stamp,
        };
        if let Some((_, current)) = self.looked.borrow().as_ref().filter(|(at, _)| *at == stamp) {
            return current.clone();
        }
        let current = version(&link, keys, stamp.since_unix_s).unwrap_or_else(Current::Damaged);
        *self.looked.borrow_mut() = Some((stamp, current.clone()));
        current
    }

    fn stamp(&self, link: &Path) -> io::Result<Stamp> {
        let metadata = fs::symlink_metadata(link)?;
        let mut files = Vec::new();
        for entry in fs::read_dir(link).into_iter().flatten().flatten() {
            let at = entry.metadata()?;
            let name = entry.file_name().to_string_lossy().into_owned();
            files.push((name, at.ino(), at.size(), at.ctime(), at.ctime_nsec()));
        }
        files.sort();
        let since_unix_s = u64::try_from(metadata.mtime()).unwrap_or(0);
        Ok(Stamp { linked: self.linked(), since_unix_s, files })
    }

    /// The files of the active version, but for its bundle.
    pub(crate) fn files(&self) -> Vec<PackedFile> {
        let entries = fs::read_dir(self.root.join(CURRENT)).into_iter().flatten().flatten();
        let file = |entry: fs::DirEntry| {
            let name = entry.file_name().into_string().ok().filter(|name| name != RESERVED)?;
            Some(PackedFile { bytes: fs::read(entry.path()).ok()?, name })
        };
        entries.filter_map(file).collect()
    }

    /// The number of a version that is as it was signed, and has not expired.
    pub(crate) fn good_version(&self, name: &str, now: u64, keys: &[PublicKey]) -> Option<u64> {
        match version(&self.root.join(VERSIONS).join(name), keys, 0) {
            Ok(Current::Version(there)) if now < there.expires_unix_s => Some(there.version),
            _ => None,
        }
    }

    /// Writes a version, if it is not there whole. Returns the name of its directory.
    pub(crate) fn install(&self, name: &str, files: &[PackedFile]) -> io::Result<String> {
        // A version that somebody has changed stays for those who have it open; its repair has another name.
        for copy in 0..100 {
            let name = if copy == 0 { name.to_owned() } else { format!("{name}.{copy}") };
            let path = self.root.join(VERSIONS).join(&name);
            if !path.exists() {
                self.write_version(&path, files)?;
                return Ok(name);
            }
            let is_as_signed = |file: &PackedFile| {
                fs::read(path.join(&file.name)).is_ok_and(|bytes| bytes == file.bytes)
            };
            if files.iter().all(is_as_signed) {
                return Ok(name);
            }
        }
        Err(io::Error::other(format!(
            "{name} was altered 100 times; remove its directories in {VERSIONS}"
        )))
    }

    fn new_version(&self) -> PathBuf {
        self.root.join(VERSIONS).join(NEW)
    }

    /// Writes a version whole, or leaves nothing of it: what did not fit would keep the disk full.
    fn write_version(&self, path: &Path, files: &[PackedFile]) -> io::Result<()> {
        let new = self.new_version();
        self.write_new(&new, path, files).inspect_err(|_| {
            let _ = fs::remove_dir_all(&new);
        })
    }

    fn write_new(&self, new: &Path, path: &Path, files: &[PackedFile]) -> io::Result<()> {
        self.step("remove the rest of another version")?;
        match fs::remove_dir_all(new) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        self.step("make a directory")?;
        fs::DirBuilder::new().mode(DIRECTORY_MODE).create(new)?;
        for file in files {
            self.step("write a file")?;
            write(&new.join(&file.name), &file.bytes, FILE_MODE)?;
        }
        self.step("flush the directory")?;
        File::open(new)?.sync_all()?;
        self.step("rename the directory")?;
        rename_flushed(new, path)
    }

    /// Activates an installed version.
    pub(crate) fn switch(&self, name: &str) -> io::Result<()> {
        let new = self.root.join(".current");
        self.step("remove the rest of another link")?;
        match fs::remove_file(&new) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        self.step("make a link")?;
        symlink(Path::new(VERSIONS).join(name), &new)?;
        self.step("rename the link")?;
        rename_flushed(&new, &self.root.join(CURRENT))
    }

    /// The directory that the link leads to.
    pub(crate) fn linked(&self) -> Option<String> {
        let target = fs::read_link(self.root.join(CURRENT)).ok()?;
        Some(target.file_name()?.to_str()?.to_owned())
    }

    /// Removes old versions, but for the one active, those of `also`, and the latest few.
    pub(crate) fn clean(&self, also: &[Option<&str>]) -> io::Result<()> {
        let linked = self.linked();
        let entries = fs::read_dir(self.root.join(VERSIONS))?.flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.retain(|name| !name.starts_with('.'));
        names.sort();
        let old = names.len().saturating_sub(KEPT);
        for name in names.into_iter().take(old) {
            if Some(&name) != linked.as_ref() && !also.contains(&Some(&*name)) {
                self.step("remove an old version")?;
                // Out of the way first: what is half removed is not a version.
                let new = self.root.join(VERSIONS).join(".old");
                let _ = fs::remove_dir_all(&new);
                fs::rename(self.root.join(VERSIONS).join(name), &new)?;
                fs::remove_dir_all(&new)?;
            }
        }
        Ok(())
    }

    fn step(&self, name: &'static str) -> io::Result<()> {
        (self.steps.0)(name)
    }
}

/// The version in a directory.
fn version(directory: &Path, keys: &[PublicKey], since_unix_s: u64) -> Result<Current, String> {
    let read = |name: &str| match fs::read(directory.join(name)) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        read => read.map(Some).map_err(|error| format!("{name}: {error}")),
    };
    let Some(sealed) = read(RESERVED)? else {
        let policy = read(crate::POLICY)?.ok_or("it has no policy")?;
        return Ok(Current::Default(sha256(&policy)));
    };
    let bundle = Bundle::open(&sealed, keys).map_err(|error| format!("{RESERVED}: {error}"))?;
    for file in &bundle.files {
        if read(&file.name)?.as_ref() != Some(&file.bytes) {
            return Err(format!("{} is not as it was signed", file.name));
        }
    }
    Ok(Current::Version(ActiveVersion {
        version: bundle.manifest.version,
        sha256: bundle.sha256,
        since_unix_s,
        expires_unix_s: bundle.manifest.expires_unix_s,
    }))
}

fn write(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}
