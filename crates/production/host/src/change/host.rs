//! The interface between the commands and the host.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use serde::Serialize;
use thiserror::Error;
use uncork_policy::Release;
use uncork_private_files::releases::ReleaseError;

use super::desired_state::Prefix;
use super::journal::Journal;
use super::setting::{Route, SettingKey, Value};

/// A host, or one of its network namespaces. The commands read and change it only through this
/// trait.
pub trait Host {
    /// The properties of the host that limit which changes are possible.
    fn context(&mut self) -> Result<HostContext, HostError>;

    /// The value of a setting.
    fn read(&mut self, setting: &SettingKey) -> Result<Value, HostError>;

    /// The values of several settings, in their order.
    fn read_all(&mut self, settings: &[&SettingKey]) -> Result<Vec<Value>, HostError> {
        settings.iter().map(|setting| self.read(setting)).collect()
    }

    /// The bytes of a file that a desired state names.
    fn file(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// Whether this kernel may have a module that is not loaded. Unless its file can be looked for, it may.
    fn may_load(&mut self, module: &str) -> Result<bool, HostError>;

    /// Whether this kernel may have a queue discipline. Unless that can be found out, it may.
    fn may_have_qdisc(&mut self, _name: &str) -> Result<bool, HostError> {
        Ok(true)
    }

    /// Changes a setting from `from` to `to`, atomically.
    fn write(&mut self, setting: &SettingKey, from: &Value, to: &Value) -> Result<(), HostError>;

    /// The stored journal.
    fn load(&mut self) -> Result<Option<Journal>, HostError>;

    /// Replaces the stored journal atomically. Returns once it is on disk.
    fn store(&mut self, journal: &Journal) -> Result<(), HostError>;

    /// [`Self::store`], if it is possible: what restores the host does not depend on the disk. Returns whether it was.
    fn note(&mut self, journal: &Journal) -> bool {
        self.store(journal).is_ok()
    }

    /// Whether the next journal can be stored, however full the disk gets.
    ///
    /// # Errors
    ///
    /// It cannot.
    fn check_reserved(&mut self) -> Result<(), HostError> {
        Ok(())
    }

    /// Refuses a signed policy that is older than one that was accepted from the same key.
    ///
    /// # Errors
    ///
    /// It is older, or that cannot be found out.
    fn check_release(&mut self, _release: &Release) -> Result<(), ReleaseError> {
        Ok(())
    }

    /// Notes that a signed policy is active: from now on older ones are refused.
    ///
    /// # Errors
    ///
    /// Why that cannot be noted, as a warning.
    fn accept_release(&mut self, _release: &Release) -> Result<(), String> {
        Ok(())
    }

    /// Starts a process that undoes the open changes when this one dies, or when they expire.
    fn post_guard(&mut self) -> Result<(), HostError>;

    /// Whether such a process lives.
    fn guard(&mut self) -> Watchdog;

    /// The time.
    fn now(&self) -> Now;
}

/// Whether a process lives that undoes open changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(any(test, feature = "schemars"), derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Watchdog {
    /// It does.
    Alive,
    /// It does not: it was killed, or is stopped.
    Dead,
    /// This user may not see processes of others.
    Unknown,
}

/// Properties of the host that changes depend on.
#[derive(Clone, Debug, Default)]
pub struct HostContext {
    /// Registered algorithms.
    pub available: Vec<String>,
    /// Algorithms that unprivileged processes may choose.
    pub allowed: Vec<String>,
    /// Whether this is the initial namespace, which owns the list of allowed algorithms.
    pub is_initial: bool,
    /// Whether the files read at boot apply to this namespace.
    pub boots: bool,
    /// Whether the host runs systemd, which reads those files.
    pub has_systemd: bool,
    /// The preferred unicast routes of the main table.
    pub routes: Vec<(Prefix, Route)>,
    /// Destinations in the main table that lead nowhere: blackhole, unreachable, prohibit, throw.
    pub closed: BTreeSet<Prefix>,
    /// Destinations of `routes` that must not be changed or copied: they expire, router advertisements made them, or they have
    /// nexthop objects.
    pub fixed: BTreeSet<Prefix>,
    /// This program, for the unit that applies the desired state at boot.
    pub program: String,
    /// The directory of the journal.
    pub state: String,
}

/// The time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Now {
    /// The boot and the network namespace.
    pub boot: String,
    /// Seconds since boot, suspended time included.
    pub boot_s: u64,
    /// Seconds of Unix time.
    pub unix_s: u64,
}

/// Why the host cannot be read or changed. The message names the place, the reason and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct HostError(pub String);
