//! The document that `uncork status` shows.

use serde::Serialize;
use uncork_host::change::{OtherJournal, Status};

use super::processes::Process;
use crate::kernel::KernelStatus;
use crate::steer::{SteerDocument, SteeredCgroup, steer_document};

/// What was found.
#[derive(Default)]
pub(super) struct Found {
    pub(super) unix_s: i64,
    pub(super) host: Option<Status>,
    pub(super) others: Vec<OtherJournal>,
    /// The process that changes or tests the host's settings now.
    pub(super) holder: Option<u32>,
    pub(super) kernel: Option<KernelStatus>,
    pub(super) steered: Vec<SteeredCgroup>,
    pub(super) processes: Vec<Process>,
    pub(super) attention: Vec<String>,
    pub(super) unseen: Vec<String>,
}

/// `docs/schemas/status-1.json`.
#[derive(Serialize)]
pub(super) struct StatusDocument {
    schema: &'static str,
    pub(super) unix_s: i64,
    pub(super) host: Option<Status>,
    pub(super) changed_by: Option<u32>,
    pub(super) journals: Vec<OtherJournal>,
    pub(super) kernel: Option<KernelStatus>,
    pub(super) steer: SteerDocument,
    pub(super) recorders: Vec<Recorder>,
    pub(super) processes: Vec<Process>,
    pub(super) attention: Vec<String>,
    pub(super) unseen: Vec<String>,
}

/// A process that records the connections of a steered cgroup.
#[derive(Serialize)]
pub(super) struct Recorder {
    pub(super) cgroup: String,
    pub(super) process: u32,
}

impl StatusDocument {
    pub(super) fn new(found: Found, attention: Vec<String>) -> Self {
        let recorders = found.steered.iter().filter_map(|steered| {
            let cgroup = steered.status.as_ref()?.description.cgroup.clone();
            Some(Recorder { cgroup, process: steered.recorder? })
        });
        let recorders = recorders.collect();
        let steered = found.steered.into_iter().filter_map(|steered| steered.status);
        Self {
            schema: "uncork.status/1",
            unix_s: found.unix_s,
            host: found.host,
            changed_by: found.holder,
            journals: found.others,
            kernel: found.kernel,
            steer: steer_document(&steered.collect::<Vec<_>>()),
            recorders,
            processes: found.processes,
            attention,
            unseen: found.unseen,
        }
    }
}
