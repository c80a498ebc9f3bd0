//! The document that `uncork status` shows: `docs/schemas/status-1.json`.

use serde::Serialize;
use uncork_host::change::{OtherJournal, Status};

use super::processes::Process;
use uncork_kernel::KernelStatus;
use uncork_steer::SteeredCgroup;

const SCHEMA: &str = "uncork.status/1";

/// What of uncork is active on a host.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct StatusDocument {
    #[cfg_attr(test, schemars(extend("const" = SCHEMA)))]
    schema: &'static str,
    /// When the host was read.
    pub(super) unix_s: i64,
    /// The document of `uncork host status`; null if it is not visible.
    #[cfg_attr(test, schemars(with = "serde_json::Value", extend("anyOf" = [{"$ref": "host-status-1.json"}, {"type": "null"}])))]
    pub(super) host: Option<Status>,
    /// The process that changes or tests the host's settings now.
    pub(super) changed_by: Option<u32>,
    /// What is applied in other network namespaces, and what was in those of earlier boots.
    pub(super) journals: Vec<OtherJournal>,
    /// The document of `uncork kernel status`; null if it is not visible.
    #[cfg_attr(test, schemars(with = "serde_json::Value", extend("anyOf" = [{"$ref": "kernel-1.json"}, {"type": "null"}])))]
    pub(super) kernel: Option<KernelStatus>,
    /// The document of `uncork steer status`.
    #[cfg_attr(test, schemars(with = "serde_json::Value", extend("$ref" = "steer-1.json")))]
    pub(super) steer: uncork_steer::StatusDocument,
    /// The processes that record the connections of steered cgroups.
    pub(super) recorders: Vec<Recorder>,
    /// Running commands of uncork.
    pub(super) processes: Vec<Process>,
    /// What needs attention, with the remedy. If there is any, the exit status is 1.
    pub(super) attention: Vec<String>,
    /// What this user cannot see.
    pub(super) unseen: Vec<String>,
}

/// A process that records the connections of a steered cgroup.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Recorder {
    /// The cgroup's directory.
    pub(super) cgroup: String,
    /// The process.
    pub(super) process: u32,
}

impl StatusDocument {
    /// A host on which nothing is active.
    pub(super) fn new(unix_s: i64) -> Self {
        Self {
            schema: SCHEMA,
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

#[cfg(test)]
mod tests {
    use uncork_testkit::assert_schema;

    use super::*;

    #[test]
    fn schema_is_current() {
        assert_schema!(StatusDocument, "status-1", "`uncork status --format json`");
    }
}
