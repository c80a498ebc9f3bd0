//! Files of the BPF file system that keep a policy active after `apply` has ended.
//!
//! ```text
//! steer/CGROUP/link          the program's place at the cgroup
//! steer/CGROUP/sockets ends lost
//!                            maps that stay when a policy is replaced
//! steer/CGROUP/names-POLICY  the description of each policy that was active, for connections that it decided
//! steer/CGROUP/pending guard
//!                            the deadline to confirm the active policy, and the process that rolls it back
//! steer/CGROUP/PROGRAM/      one policy, named after its program's number: program, ask, counters, description
//! ```
//!
//! The active policy is that of the program that the link has. Others are that before a pending one, or left by an `apply` that was
//! killed.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use uncork_kernel::{CgroupLink, Map, has_pin_directory, make_pin_directory};

use crate::error::Error;
use crate::lock::lock;
use crate::pending::{PendingRecords, WatchdogProcess};
use crate::sockets::SteeredSockets;

const STEER: &str = "steer";
const NAMES: &str = "names-";
const PENDING: &str = "pending";
const GUARD: &str = "guard";
/// Maximum number of archived descriptions.
const MAX_ARCHIVED: usize = 64;

/// The pins below a directory of a BPF file system.
#[derive(Clone, Debug)]
pub struct SteerPins(PathBuf);

/// The pins of one cgroup.
#[derive(Clone, Debug)]
pub(crate) struct CgroupPins(PathBuf);

impl SteerPins {
    /// Those below `directory`, which is in the root of a BPF file system.
    pub fn in_directory(directory: impl Into<PathBuf>) -> Self {
        Self(directory.into())
    }

    /// Waits until no other process changes policies. `None` if there are no pins, nor a directory for them.
    pub(crate) fn lock(&self) -> Result<Option<File>, Error> {
        let directory = self.0.join(STEER);
        if !has_pin_directory(&directory)? {
            return Ok(None);
        }
        lock(&directory, true, Error::Busy)
    }

    /// The same, after it has made the directory.
    pub(crate) fn make_and_lock(&self) -> Result<File, Error> {
        loop {
            make_pin_directory(&self.0.join(STEER))?;
            // Another process may have removed the directory meanwhile, as it was empty.
            if let Some(lock) = self.lock()? {
                return Ok(lock);
            }
        }
    }

    /// Those of the cgroup with this number.
    pub(crate) fn of(&self, cgroup: u64) -> CgroupPins {
        CgroupPins(self.0.join(STEER).join(cgroup.to_string()))
    }

    /// Those of all cgroups that have some, if no other user may write to their directories.
    pub(crate) fn all(&self) -> Result<Vec<CgroupPins>, Error> {
        let directory = self.0.join(STEER);
        if !has_pin_directory(&directory)? {
            return Ok(Vec::new());
        }
        let all: Vec<_> = children(&directory)?.into_iter().map(CgroupPins).collect();
        all.iter().try_for_each(|it| it.is_there().map(drop))?;
        Ok(all)
    }

    /// Removes the directories that are empty.
    pub(crate) fn tidy(&self) {
        // Only empty ones can be removed.
        let _ = fs::remove_dir(self.0.join(STEER));
        let _ = fs::remove_dir(&self.0);
    }
}

impl CgroupPins {
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Whether there are some, where no other user may write.
    pub(crate) fn is_there(&self) -> Result<bool, Error> {
        Ok(has_pin_directory(&self.0)?)
    }

    pub(crate) fn link(&self) -> PathBuf {
        self.0.join("link")
    }

    pub(crate) fn sockets(&self) -> PathBuf {
        self.0.join("sockets")
    }

    /// The decisions for open connections, if they are pinned.
    pub(crate) fn steered_sockets(&self) -> Result<Option<SteeredSockets>, Error> {
        Ok(Map::open(&self.sockets())?.map(SteeredSockets))
    }

    pub(crate) fn ends(&self) -> PathBuf {
        self.0.join("ends")
    }

    pub(crate) fn lost(&self) -> PathBuf {
        self.0.join("lost")
    }

    /// Removes the maps that outlive a policy.
    pub(crate) fn remove_shared(&self) -> Result<(), Error> {
        [self.sockets(), self.ends(), self.lost()].iter().try_for_each(|path| remove_file(path))
    }

    /// The cgroup's number.
    pub(crate) fn number(&self) -> &str {
        self.0.file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }

    /// The policy that is not confirmed.
    pub(crate) fn pending(&self) -> Result<Option<PendingRecords>, Error> {
        self.read_blob(&self.0.join(PENDING))
    }

    pub(crate) fn set_pending(&self, pending: PendingRecords) -> Result<(), Error> {
        self.write_blob(PENDING, &pending)
    }

    /// Nothing is pending from now on: its guard ends.
    pub(crate) fn clear_pending(&self) -> Result<(), Error> {
        [PENDING, GUARD].map(|name| self.0.join(name)).iter().try_for_each(
            |path| match remove_file(path) {
                Err(Error::Step { error, .. }) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                removed => removed,
            },
        )
    }

    /// The process that rolls it back.
    pub(crate) fn guard(&self) -> Result<Option<WatchdogProcess>, Error> {
        self.read_blob(&self.0.join(GUARD))
    }

    pub(crate) fn set_guard(&self, guard: WatchdogProcess) -> Result<(), Error> {
        self.write_blob(GUARD, &guard)
    }

    /// The value of a pinned blob.
    pub(crate) fn read_blob<T: DeserializeOwned>(&self, path: &Path) -> Result<Option<T>, Error> {
        let Some(blob) = Map::open(path)? else { return Ok(None) };
        let text = blob.bytes().map_err(Error::step(format!("read {}", path.display())))?;
        let read = serde_json::from_slice(&text);
        read.map(Some).map_err(|error| self.damaged(&error.to_string()))
    }

    fn write_blob(&self, name: &str, value: &impl Serialize) -> Result<(), Error> {
        let text = serde_json::to_vec(value).map_err(|error| self.damaged(&error.to_string()))?;
        self.replace(&self.0.join(name), &Map::blob(name, &text)?)
    }

    /// Pins a map in the place of the one at `path`, without a moment in between.
    fn replace(&self, path: &Path, map: &Map) -> Result<(), Error> {
        let new = self.0.join("new");
        // Left by a process that was killed.
        if new.exists() {
            remove_file(&new)?;
        }
        map.pin(&new)?;
        fs::rename(&new, path).map_err(Error::step(format!("rename {}", new.display())))
    }

    pub(crate) fn damaged(&self, reason: &str) -> Error {
        Error::Damaged { path: self.0.clone(), reason: reason.to_owned() }
    }

    /// The description of the policy with this key.
    pub(crate) fn archived(&self, policy: u64) -> PathBuf {
        self.0.join(format!("{NAMES}{policy:016x}"))
    }

    /// Archives the description of a policy, and removes the oldest ones.
    pub(crate) fn archive(&self, policy: u64, blob: &Map) -> Result<(), Error> {
        let path = self.archived(policy);
        // The active policy may be the same: it is never without a description.
        self.replace(&path, blob)?;
        let is_archived = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.starts_with(NAMES))
        };
        let mut all: Vec<PathBuf> = children(&self.0)?.into_iter().filter(is_archived).collect();
        all.sort_by_key(|path| fs::metadata(path).and_then(|it| it.modified()).ok());
        let surplus = all.len().saturating_sub(MAX_ARCHIVED);
        all[..surplus].iter().filter(|one| **one != path).try_for_each(|one| remove_file(one))
    }

    /// The directory of the policy with this program.
    pub(crate) fn policy(&self, program: u32) -> PathBuf {
        self.0.join(program.to_string())
    }

    /// The number of the active program, if any.
    pub(crate) fn active_program(&self) -> Result<Option<u32>, Error> {
        let Some(link) = CgroupLink::open(&self.link())? else { return Ok(None) };
        let (program, cgroup) =
            link.info().map_err(Error::step(format!("ask about {}", self.link().display())))?;
        // A link is inactive once its cgroup is removed.
        Ok((cgroup != 0).then_some(program))
    }

    pub(crate) fn make(&self) -> Result<(), Error> {
        Ok(make_pin_directory(&self.0)?)
    }

    /// Removes the policies of other programs than these.
    pub(crate) fn remove_policies_but(&self, programs: &[Option<u32>]) -> Result<(), Error> {
        let kept: Vec<_> = programs.iter().flatten().map(|program| self.policy(*program)).collect();
        for path in children(&self.0)? {
            if path.is_dir() && !kept.contains(&path) {
                remove_directory(&path)?;
            }
        }
        Ok(())
    }

    /// From now on no policy is active.
    pub(crate) fn detach(&self) -> Result<(), Error> {
        if let Some(link) = CgroupLink::open(&self.link())? {
            // The link of a removed cgroup is detached already.
            let _ = link.detach();
            remove_file(&self.link())?;
        }
        Ok(())
    }

    /// Removes everything, the link first.
    pub(crate) fn remove(&self) -> Result<(), Error> {
        self.detach()?;
        self.remove_policies_but(&[])?;
        remove_directory(&self.0)
    }
}

fn children(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let failed = |error| Error::step(format!("read {}", directory.display()))(error);
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let mut paths = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<Vec<_>>>()
        .map_err(failed)?;
    paths.sort_unstable();
    Ok(paths)
}

/// Removes a directory and the pins in it.
pub(crate) fn remove_directory(directory: &Path) -> Result<(), Error> {
    for path in children(directory)? {
        remove_file(&path)?;
    }
    fs::remove_dir(directory).map_err(Error::step(format!("remove {}", directory.display())))
}

fn remove_file(path: &Path) -> Result<(), Error> {
    fs::remove_file(path).map_err(Error::step(format!("remove {}", path.display())))
}
