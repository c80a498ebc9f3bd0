//! The cgroups that a command is about.

use std::path::Path;

use uncork_steer::{Error, SteerPins, Steered};

use super::args::CgroupArgs;
use crate::failure::Failure;

/// The cgroup that is named, or all; at least one.
pub(super) fn chosen(pins: &SteerPins, args: &CgroupArgs) -> Result<Vec<Steered>, Failure> {
    let found = match args.cgroup.as_deref() {
        Some(cgroup) => vec![at(pins, cgroup)?],
        None => Steered::all(pins).map_err(failure)?,
    };
    if found.is_empty() { Err(Failure::Missed("nothing is steered".to_owned())) } else { Ok(found) }
}

pub(super) fn at(pins: &SteerPins, cgroup: &Path) -> Result<Steered, Failure> {
    Steered::at(pins, cgroup).map_err(failure)
}

pub(super) fn failure(error: Error) -> Failure {
    match error {
        Error::NotSteered(_) => Failure::Missed(error.to_string()),
        Error::Cgroup { path, reason } => {
            let remedy = "choose one below the directory that `findmnt -t cgroup2` shows";
            let reason = format!("not a cgroup v2 directory: {reason}; {remedy}");
            Failure::value("--cgroup <DIR>", path.display(), reason)
        }
        error if error.is_users() => Failure::Usage(error.to_string()),
        error => Failure::Environment(error.to_string()),
    }
}
