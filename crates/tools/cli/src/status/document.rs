//! The document that `uncork status` shows.

use serde::Serialize;
use uncork_host::change::{OtherJournal, Status};

use super::processes::Process;
use uncork_kernel::KernelStatus;
use uncork_steer::SteeredCgroup;

/// `docs/schemas/status-1.json`.
#[derive(Serialize)]
pub(super) struct StatusDocument {
    schema: &'static str,
    pub(super) unix_s: i64,
    pub(super) host: Option<Status>,
    /// The process that changes or tests the host's settings now.
    pub(super) changed_by: Option<u32>,
    pub(super) journals: Vec<OtherJournal>,
    pub(super) kernel: Option<KernelStatus>,
    pub(super) steer: uncork_steer::StatusDocument,
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
    /// A host on which nothing is active.
    pub(super) fn new(unix_s: i64) -> Self {
        Self {
            schema: "uncork.status/1",
            unix_s,
            host: None,
            changed_by: None,
            journals: Vec::new(),
            kernel: None,
            steer: uncork_steer::StatusDocument::new(&[]),
            recorders: Vec::new(),
            processes: Vec::new(),
            attention: Vec::new(),
            unseen: Vec::new(),
        }
    }

    /// Adds the cgroups with pins.
    pub(super) fn add_steered(&mut self, steered: Vec<SteeredCgroup>) {
        let recorders = steered.iter().filter_map(|steered| {
            let cgroup = steered.status.as_ref()?.description.cgroup.clone();
            Some(Recorder { cgroup, process: steered.recorder? })
        });
        self.recorders = recorders.collect();
        let statuses: Vec<_> = steered.into_iter().filter_map(|steered| steered.status).collect();
        self.steer = uncork_steer::StatusDocument::new(&statuses);
    }
}
