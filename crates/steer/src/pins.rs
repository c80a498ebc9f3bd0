//! What keeps a policy in force after `apply` has ended: files of the BPF file system.
//!
//! ```text
//! steer/CGROUP/link          the program's place at the cgroup
//! steer/CGROUP/sockets ends lost
//!                            what stays when policies are exchanged
//! steer/CGROUP/names-POLICY  the description of each policy that was in force, for connections that it decided
//! steer/CGROUP/PROGRAM/      one policy, named after its program's number: program, ask, counters, description
//! ```
//!
//! The policy in force is the one whose number the link has. Others are left by an `apply` that was killed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use uncork_kernel::{CgroupLink, Map, check_pin_directory};

use crate::error::Error;

const STEER: &str = "steer";
const NAMES: &str = "names-";
/// Policies whose descriptions are kept.
const POLICIES: usize = 64;

/// The pins below a directory of a BPF file system.
#[derive(Clone, Debug)]
pub struct Pins(PathBuf);

/// The pins of one cgroup.
#[derive(Clone, Debug)]
pub(crate) struct CgroupPins(PathBuf);

impl Pins {
    /// Those below `directory`, which is in the root of a BPF file system.
    pub fn in_directory(directory: impl Into<PathBuf>) -> Self {
        Self(directory.into())
    }

    /// Whether there is a file system for them.
    pub(crate) fn check_file_system(&self) -> Result<(), Error> {
        Ok(check_pin_directory(&self.0)?)
    }

    /// Those of the cgroup with this number.
    pub(crate) fn of(&self, cgroup: u64) -> CgroupPins {
        CgroupPins(self.0.join(STEER).join(cgroup.to_string()))
    }

    /// Those of all cgroups that have some.
    pub(crate) fn all(&self) -> Result<Vec<CgroupPins>, Error> {
        Ok(children(&self.0.join(STEER))?.into_iter().map(CgroupPins).collect())
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

    pub(crate) fn link(&self) -> PathBuf {
        self.0.join("link")
    }

    pub(crate) fn sockets(&self) -> PathBuf {
        self.0.join("sockets")
    }

    pub(crate) fn ends(&self) -> PathBuf {
        self.0.join("ends")
    }

    pub(crate) fn lost(&self) -> PathBuf {
        self.0.join("lost")
    }

    /// The description of the policy with this fingerprint.
    pub(crate) fn names(&self, policy: &str) -> PathBuf {
        self.0.join(format!("{NAMES}{policy}"))
    }

    /// Keeps the description of a policy, and of as many before it as may matter.
    pub(crate) fn keep_names(&self, policy: &str, note: &Map) -> Result<(), Error> {
        let (path, new) = (self.names(policy), self.0.join("new-names"));
        // Left by a process that was killed.
        if new.exists() {
            remove_file(&new)?;
        }
        note.pin(&new)?;
        // The policy in force may be the same, with other listeners: it is never without names.
        fs::rename(&new, &path).map_err(Error::step(format!("rename {}", new.display())))?;
        let is_names = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.starts_with(NAMES))
        };
        let mut kept: Vec<PathBuf> = children(&self.0)?.into_iter().filter(is_names).collect();
        kept.sort_by_key(|path| fs::metadata(path).and_then(|it| it.modified()).ok());
        let surplus = kept.len().saturating_sub(POLICIES);
        kept[..surplus].iter().filter(|one| **one != path).try_for_each(|one| remove_file(one))
    }

    /// The directory of the policy with this program.
    pub(crate) fn policy(&self, program: u32) -> PathBuf {
        self.0.join(program.to_string())
    }

    /// The number of the program in force, if one is.
    pub(crate) fn in_force(&self) -> Result<Option<u32>, Error> {
        let Some(link) = CgroupLink::open(&self.link())? else { return Ok(None) };
        let (program, cgroup) =
            link.info().map_err(Error::step(format!("ask about {}", self.link().display())))?;
        // A link whose cgroup was removed is in force no more.
        Ok((cgroup != 0).then_some(program))
    }

    pub(crate) fn make(&self) -> Result<(), Error> {
        fs::create_dir_all(&self.0).map_err(Error::step(format!("make {}", self.0.display())))
    }

    /// Removes the policies that are not in force.
    pub(crate) fn remove_policies_but(&self, program: Option<u32>) -> Result<(), Error> {
        let kept = program.map(|program| self.policy(program));
        for path in children(&self.0)? {
            if path.is_dir() && Some(&path) != kept.as_ref() {
                remove_directory(&path)?;
            }
        }
        Ok(())
    }

    /// Removes everything, the link first: from then on no policy is in force.
    pub(crate) fn remove(&self) -> Result<(), Error> {
        if let Some(link) = CgroupLink::open(&self.link())? {
            // The link of a removed cgroup is detached already.
            let _ = link.detach();
            remove_file(&self.link())?;
        }
        self.remove_policies_but(None)?;
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
