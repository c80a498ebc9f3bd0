//! Puts a policy in force, or exchanges the one that is.

use std::fs::{File, TryLockError};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use uncork_kernel::{CgroupLink, Map, Object, available};
use uncork_policy::{Flat, Origins, Outcome, Policy};

use crate::description::Description;
use crate::error::Error;
use crate::layout::NAME;
use crate::pins::{CgroupPins, Pins, remove_directory};
use crate::tables::{self, Loaded, Shared};

/// A policy to put in force.
#[derive(Debug)]
pub struct Request<'a> {
    /// The policy, with its table.
    pub policy: &'a Policy,
    /// The cgroup's directory.
    pub cgroup: &'a Path,
    /// Names of listeners, and their ports.
    pub listeners: &'a [(String, u16)],
    /// Where clients come from.
    pub origins: &'a Origins,
    /// Now.
    pub unix_s: i64,
}

/// What `apply` has done.
#[derive(Clone, Debug)]
pub struct Applied {
    /// Whether another policy was in force.
    pub exchanged: bool,
    /// What is in force.
    pub description: Description,
}

/// Puts a policy in force for all connections that sockets of the cgroup accept or open from now on. Until the last step
/// nothing has changed; whatever fails, or kills the process, before it leaves the policy that was in force.
///
/// # Errors
///
/// If the policy asks for what the kernel does not know or the host does not have, or a step is refused.
pub fn apply(pins: &Pins, request: &Request<'_>) -> Result<Applied, Error> {
    let Request { policy, cgroup, listeners, origins, .. } = *request;
    let flat = policy.flat(listeners, origins)?;
    check(policy, &flat)?;
    pins.check_file_system()?;
    let (directory, number) = open_cgroup(cgroup)?;
    lock(&directory, cgroup, Error::Busy)?;
    let own = pins.of(number);
    let description = Description {
        cgroup: absolute(cgroup).display().to_string(),
        applied_unix_s: request.unix_s,
        listeners: listeners.to_vec(),
        ..Description::new(policy, &flat)
    };
    own.make()?;
    let in_force = own.in_force()?;
    let done = exchange(&own, &directory, &flat, policy, &description, in_force);
    if let (Err(_), None) = (&done, in_force) {
        // The error counts, not what is left.
        let _ = own.remove();
        pins.tidy();
    }
    done?;
    Ok(Applied { exchanged: in_force.is_some(), description })
}

fn exchange(
    own: &CgroupPins,
    cgroup: &File,
    flat: &Flat,
    policy: &Policy,
    description: &Description,
    in_force: Option<u32>,
) -> Result<(), Error> {
    if in_force.is_none() {
        // Left by a process that was killed, or by a cgroup that was removed.
        own.remove()?;
        own.make()?;
    }
    let object = tables::object()?;
    let shared = shared(own, &object)?;
    let (loaded, _shared) = Loaded::load(object, flat, policy.fingerprint(), shared)?;
    let directory = own.policy(loaded.steer.id()?);
    let put_in_force = || {
        pin(own, &directory, &loaded, description)?;
        if in_force.is_some() {
            let link = CgroupLink::open(&own.link())?.ok_or_else(|| Error::Damaged {
                path: own.path().to_owned(),
                reason: "the link is gone".to_owned(),
            })?;
            return link.exchange(&loaded.steer).map_err(Error::step("exchange the policy"));
        }
        let link = CgroupLink::attach(&loaded.steer, cgroup.as_fd());
        Ok(link.map_err(Error::step("attach to the cgroup"))?.pin(&own.link())?)
    };
    if let Err(error) = put_in_force() {
        // The error counts, not what is left.
        let _ = remove_directory(&directory);
        return Err(error);
    }
    own.remove_policies_but(own.in_force()?)
}

fn pin(
    own: &CgroupPins,
    directory: &Path,
    loaded: &Loaded,
    description: &Description,
) -> Result<(), Error> {
    std::fs::create_dir(directory).map_err(Error::step(format!("make {}", directory.display())))?;
    let text = serde_json::to_vec(description)
        .map_err(|error| Error::step("describe the policy")(error.into()))?;
    loaded.steer.pin(&directory.join("program"))?;
    loaded.ask.pin(&directory.join("ask"))?;
    loaded.counters.pin(&directory.join("counters"))?;
    let note = Map::note("description", &text)?;
    note.pin(&directory.join("description"))?;
    own.keep_names(&description.fingerprint, &note)
}

/// The maps that stay: those that are pinned, or new ones.
fn shared(own: &CgroupPins, object: &Object) -> Result<Shared, Error> {
    let pinned = [own.sockets(), own.ends(), own.lost()].map(|path| Map::open(&path));
    let [sockets, ends, lost] = pinned;
    if let (Some(sockets), Some(ends), Some(lost)) = (sockets?, ends?, lost?) {
        return Ok(Shared { sockets, ends, lost });
    }
    let shared = tables::shared(object)?;
    shared.sockets.pin(&own.sockets())?;
    shared.ends.pin(&own.ends())?;
    shared.lost.pin(&own.lost())?;
    Ok(shared)
}

/// Whether this host can do what the policy says.
fn check(policy: &Policy, flat: &Flat) -> Result<(), Error> {
    let known = available();
    for outcome in &flat.outcomes {
        let place = || place(policy, flat, outcome);
        if let Some(name) = outcome.tcp.as_deref()
            && (name.len() >= NAME || !known.iter().any(|one| one == name))
        {
            let known = known.join(", ");
            return Err(Error::Controller { place: place(), name: name.to_owned(), known });
        }
        // The largest number means no cap.
        if outcome.pacing_cap.is_some_and(|cap| cap.bytes_per_sec() >= u32::MAX.into()) {
            return Err(Error::Cap { place: place() });
        }
    }
    Ok(())
}

/// Where the outcome's rule is; the default has no line.
fn place(policy: &Policy, flat: &Flat, outcome: &Outcome) -> String {
    let rule = outcome.rule.and_then(|rule| flat.rules.get(usize::from(rule)));
    match rule {
        Some(rule) => format!("{}:{}", policy.name(), rule.line),
        None => format!("{}: [default]", policy.name()),
    }
}

/// Opens a cgroup's directory; the second is the cgroup's number.
pub(crate) fn open_cgroup(path: &Path) -> Result<(File, u64), Error> {
    let no_cgroup =
        |reason: &str| Error::Cgroup { path: path.to_owned(), reason: reason.to_owned() };
    let file = File::open(path).map_err(|error| no_cgroup(&error.to_string()))?;
    if !path.join("cgroup.procs").exists() {
        return Err(no_cgroup("it has no cgroup.procs"));
    }
    let number = file.metadata().map_err(|error| no_cgroup(&error.to_string()))?.ino();
    Ok((file, number))
}

/// Locks a directory as long as it is open. If another process has, that is the error `busy`.
pub(crate) fn lock(directory: &File, path: &Path, busy: fn(PathBuf) -> Error) -> Result<(), Error> {
    directory.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => busy(path.to_owned()),
        TryLockError::Error(error) => Error::step(format!("lock {}", path.display()))(error),
    })
}

fn absolute(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}
