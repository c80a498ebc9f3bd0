//! All steered cgroups, for `uncork status` and `uncork host doctor`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use uncork_kernel::available;
use uncork_policy::{ActivePolicy, OtherProgram};

use crate::error::Error;
use crate::pins::SteerPins;
use crate::steered::{Status, Steered};

/// A cgroup with pins.
#[derive(Debug)]
pub struct SteeredCgroup {
    /// What is active there; `None` if nothing is, because a command was killed or the cgroup was removed.
    pub status: Option<Status>,
    /// The process that records its connections.
    pub recorder: Option<u32>,
    /// Programs that run after the policy's, so that their choice counts; none if the kernel does not report them.
    later: Vec<OtherProgram>,
    directory: PathBuf,
}

impl SteeredCgroup {
    /// All cgroups with pins.
    ///
    /// # Errors
    ///
    /// If the pins cannot be read.
    pub fn all(pins: &SteerPins) -> Result<Vec<Self>, Error> {
        let look = |steered: Steered| -> Result<Self, Error> {
            let status = steered.status()?;
            let cgroup = status.as_ref().map(|status| Path::new(&status.description.cgroup));
            let others = cgroup.and_then(|cgroup| steered.others(cgroup).ok()).unwrap_or_default();
            Ok(Self {
                later: others.into_iter().filter(|other| other.is_last).collect(),
                status,
                recorder: steered.recorder(),
                directory: steered.directory().to_owned(),
            })
        };
        Steered::all(pins)?.into_iter().map(look).collect()
    }

    /// What needs attention.
    pub fn attention(&self) -> Vec<String> {
        let Some(status) = &self.status else {
            let left = self.directory.display();
            return vec![format!(
                "{left} is left of a killed command or a removed cgroup; run `uncork steer revert`"
            )];
        };
        let cgroup = &status.description.cgroup;
        let unguarded = status.is_unguarded().then(|| {
            format!(
                "{cgroup}: the process that rolls its policy back is dead; `uncork steer status` starts another one"
            )
        });
        let known = available();
        let missing = controllers(status).into_iter().filter(|name| !known.contains(name));
        let missing = missing.map(|name| {
            format!("{cgroup}: its policy chooses {name}, which the kernel does not have any more")
        });
        let later = self.later.iter().map(|other| format!("{cgroup}: {}", other.warning()));
        unguarded.into_iter().chain(missing).chain(later).collect()
    }
}

/// Steered cgroups below this one. Programs of a cgroup run before those of the cgroups above it, so its policy replaces theirs.
///
/// # Errors
///
/// If the pins cannot be read.
pub fn steered_below(pins: &SteerPins, cgroup: &Path) -> Result<Vec<String>, Error> {
    let cgroup = cgroup.canonicalize().unwrap_or_else(|_| cgroup.to_owned());
    let all = Steered::all(pins)?.into_iter().filter_map(|steered| steered.active().ok().flatten());
    let below = all.map(|description| description.cgroup);
    Ok(below.filter(|it| Path::new(it).starts_with(&cgroup) && Path::new(it) != cgroup).collect())
}

/// The other programs of all steered cgroups; none if the kernel does not report them.
pub fn other_programs(pins: &SteerPins) -> Vec<OtherProgram> {
    let of = |(steered, status): (Steered, Status)| {
        steered.others(Path::new(&status.description.cgroup)).unwrap_or_default()
    };
    active(pins).flat_map(of).collect()
}

/// The active policies of all cgroups with the controllers that they name. What the kernel does not report is missing.
pub fn active_policies(pins: &SteerPins) -> Vec<ActivePolicy> {
    let policy = |(_, status): (Steered, Status)| ActivePolicy {
        controllers: controllers(&status).into_iter().collect(),
        cgroup: status.description.cgroup,
        policy: status.description.policy,
    };
    active(pins).map(policy).collect()
}

/// The steered cgroups with a status that can be read.
fn active(pins: &SteerPins) -> impl Iterator<Item = (Steered, Status)> {
    let all = Steered::all(pins).unwrap_or_default().into_iter();
    all.filter_map(|steered| {
        let status = steered.status().ok().flatten()?;
        Some((steered, status))
    })
}

/// The controllers that a policy names.
fn controllers(status: &Status) -> BTreeSet<String> {
    let decided = status.description.decided.iter();
    decided.filter_map(|one| one.kernel_name().map(str::to_owned)).collect()
}
