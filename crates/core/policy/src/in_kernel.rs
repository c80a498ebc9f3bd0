//! What `uncork steer` and `uncork host` report of the policies that are active in cgroups.

use serde::{Deserialize, Serialize};

/// An active policy of `uncork steer`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActivePolicy {
    /// The cgroup.
    pub cgroup: String,
    /// The policy's name.
    pub policy: String,
    /// The controllers that it gives to connections.
    pub controllers: Vec<String>,
}

/// A BPF program at the cgroup of a policy of `uncork steer`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OtherProgram {
    /// The cgroup under the policy.
    pub cgroup: String,
    /// The kernel's number of the program.
    pub number: u32,
    /// Its name, if the kernel reports it.
    pub name: Option<String>,
    /// Whether it runs after the policy's.
    pub is_last: bool,
}

impl OtherProgram {
    /// What it means for the connections of both.
    pub fn warning(&self) -> String {
        let Self { number, is_last, .. } = self;
        let name = self.name.as_ref().map(|name| format!(" `{name}`")).unwrap_or_default();
        let (order, winner) = if *is_last { ("after", "its") } else { ("before", "the policy's") };
        format!(
            "another program{name} runs {order} the policy's for the same connections: if it chooses a controller, {winner} \
             counts (bpftool prog show id {number})"
        )
    }
}
