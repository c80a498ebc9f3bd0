//! Activates a policy, or replaces the active one.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;
use uncork_cc::InLinux;
use uncork_kernel::{CgroupLink, Map, Object, available, make_pin_directory, programs_at};
use uncork_policy::{Flat, InitialRate, Origins, Outcome, Policy};

use crate::description::Description;
use crate::error::Error;
use crate::layout::{ConnectionEntry, NAME};
use crate::listeners::{self, ListenerChanges};
use crate::pending::{PendingRecords, post};
use crate::pins::{CgroupPins, SteerPins, remove_directory};
use crate::tables::{self, Loaded, Shared};

/// The kind of file system of cgroups of version 2 (statfs(2)); those of version 1 have other files of the same names.
const CGROUP2_SUPER_MAGIC: i64 = 0x6367_7270;

/// A policy to activate.
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
    /// Conditions that never match there, for `status`.
    pub warnings: &'a [String],
    /// Now.
    pub unix_s: i64,
    /// The policy is rolled back after this time, unless [`Steered::confirm`](crate::Steered::confirm) is called.
    pub ttl: Option<Duration>,
}

/// What `apply` has done.
#[derive(Clone, Debug)]
pub struct AppliedPolicy {
    /// Whether it replaced an active policy.
    pub exchanged: bool,
    /// The active policy.
    pub description: Description,
    /// Listening sockets that the policy changed; the policy is active even if that failed.
    pub listeners: Result<ListenerChanges, String>,
}

/// Activates a policy for all connections that sockets of the cgroup accept or open from now on. The last step replaces the
/// previous policy. If an earlier step fails or the process is killed, the previous policy stays active.
///
/// # Errors
///
/// If the policy asks for what the kernel does not know or the host does not have, or a step is refused.
pub fn apply(pins: &SteerPins, request: &Request<'_>) -> Result<AppliedPolicy, Error> {
    let Request { policy, cgroup, listeners, origins, warnings, unix_s, ttl } = *request;
    let flat = policy.flat(listeners, origins)?;
    check(policy, &flat)?;
    let (directory, number) = open_cgroup(cgroup)?;
    let own = pins.of(number);
    own.is_there()?;
    let _lock = pins.make_and_lock()?;
    let description = Description {
        cgroup: absolute(cgroup).display().to_string(),
        applied_unix_s: unix_s,
        warnings: warnings.to_vec(),
        release: policy.release().cloned(),
        ..Description::new(policy, &flat, listeners.to_vec())
    };
    own.make()?;
    let active = own.active_program()?;
    let done = exchange(&own, &directory, &flat, &description, active, ttl);
    if let (Err(_), None) = (&done, active) {
        // The error counts, not a failure to clean up.
        let _ = own.remove();
        pins.tidy();
    }
    done?;
    let listeners = listeners::set(&own, cgroup, description.listener_controller());
    let listeners = listeners.map_err(|error| error.to_string());
    Ok(AppliedPolicy { exchanged: active.is_some(), description, listeners })
}

fn exchange(
    own: &CgroupPins,
    cgroup: &File,
    flat: &Flat,
    description: &Description,
    active: Option<u32>,
    ttl: Option<Duration>,
) -> Result<(), Error> {
    if active.is_none() {
        // Left by a process that was killed, or by a cgroup that was removed.
        own.remove()?;
        own.make()?;
    }
    let object = tables::object()?;
    let shared = shared(own, &object)?;
    let (loaded, _shared) = Loaded::load(object, flat, description.key(), shared)?;
    let directory = own.policy(loaded.steer.id()?);
    let earlier = own.pending()?;
    // A rollback never returns to a pending policy.
    let pending =
        ttl.map(|ttl| PendingRecords::new(ttl, earlier.map_or(active, |earlier| earlier.before)));
    let activate = || {
        pin(own, &directory, &loaded, description)?;
        if let Some(pending) = pending {
            own.set_pending(pending)?;
            post(own)?;
        }
        if active.is_some() {
            let link = CgroupLink::open(&own.link())?.ok_or_else(|| Error::Damaged {
                path: own.path().to_owned(),
                reason: "the link is gone".to_owned(),
            })?;
            return link.exchange(&loaded.steer).map_err(Error::step("exchange the policy"));
        }
        let link = CgroupLink::attach(&loaded.steer, cgroup.as_fd());
        Ok(link.map_err(|error| not_attached(error, cgroup))?.pin(&own.link())?)
    };
    if let Err(error) = activate() {
        // The error counts, not a failure to clean up.
        let _ = remove_directory(&directory);
        let _ = earlier.map_or_else(|| own.clear_pending(), |earlier| own.set_pending(earlier));
        return Err(error);
    }
    if pending.is_none() {
        own.clear_pending()?;
    }
    own.remove_policies_but(&[own.active_program()?, pending.and_then(|pending| pending.before)])
}

/// The kernel answers EPERM both without the privilege, and if a program at this cgroup or above it was attached without
/// `BPF_F_ALLOW_MULTI` (linux kernel/bpf/cgroup.c, `hierarchy_allows_attach`). Loading the policy needed the privilege.
fn not_attached(error: io::Error, cgroup: &File) -> Error {
    if error.raw_os_error() != Some(Errno::PERM.raw_os_error()) {
        return Error::step("attach to the cgroup")(error);
    }
    let here = programs_at(cgroup.as_fd()).unwrap_or_default();
    let names = here.iter().map(|(number, name)| {
        name.as_ref().map_or_else(|| number.to_string(), |name| format!("{number} ({name})"))
    });
    let names: Vec<String> = names.collect();
    let which = if names.is_empty() { String::new() } else { format!(": {}", names.join(", ")) };
    let reason = format!(
        "a BPF program at this cgroup or above it allows no other{which}; `bpftool cgroup tree` shows them: attach it with \
         BPF_F_ALLOW_MULTI, or detach it"
    );
    Error::Step { step: "attach to the cgroup".to_owned(), error: io::Error::other(reason) }
}

fn pin(
    own: &CgroupPins,
    directory: &Path,
    loaded: &Loaded,
    description: &Description,
) -> Result<(), Error> {
    make_pin_directory(directory)?;
    let text = serde_json::to_vec(description)
        .map_err(|error| Error::step("describe the policy")(error.into()))?;
    loaded.steer.pin(&directory.join("program"))?;
    loaded.ask.pin(&directory.join("ask"))?;
    loaded.counters.pin(&directory.join("counters"))?;
    let blob = Map::blob("description", &text)?;
    blob.pin(&directory.join("description"))?;
    own.archive(description.key(), &blob)
}

/// The maps that outlive a policy: pinned ones, or new ones. Those of another version of uncork are replaced: the connections in them keep
/// their settings.
fn shared(own: &CgroupPins, object: &Object) -> Result<Shared, Error> {
    let pinned = [own.sockets(), own.ends(), own.lost()].map(|path| Map::open(&path));
    let [sockets, ends, lost] = pinned;
    if let (Some(sockets), Some(ends), Some(lost)) = (sockets?, ends?, lost?) {
        if sockets.value_size() == size_of::<ConnectionEntry>() {
            return Ok(Shared { sockets, ends, lost });
        }
        own.remove_shared()?;
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
        if outcome.resume && outcome.tcp.as_deref().and_then(InLinux::with_resume).is_none() {
            return Err(Error::Resume { place: place(), name: outcome.tcp.clone() });
        }
        if let Some(name) = outcome.kernel_name()
            && (name.len() >= NAME || !known.iter().any(|one| one == name))
        {
            let known = known.join(", ");
            return Err(Error::Controller { place: place(), name: name.to_owned(), known });
        }
        let initial = match outcome.initial_rate {
            Some(InitialRate::Paced(rate)) => Some(rate),
            Some(InitialRate::Burst) | None => None,
        };
        for (key, rate) in [("pacing_cap", outcome.pacing_cap), ("initial_rate", initial)] {
            // The largest number means no limit.
            if rate.is_some_and(|rate| rate.bytes_per_sec() >= u32::MAX.into()) {
                return Err(Error::Rate { place: place(), key });
            }
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
    let kind = rustix::fs::fstatfs(&file).map_err(|error| no_cgroup(&error.to_string()))?.f_type;
    if kind != CGROUP2_SUPER_MAGIC {
        return Err(no_cgroup("it is in a file system of another kind"));
    }
    let number = file.metadata().map_err(|error| no_cgroup(&error.to_string()))?.ino();
    Ok((file, number))
}

fn absolute(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}
