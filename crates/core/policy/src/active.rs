//! Active policies of cgroups, as `uncork steer` and `uncork host` report them.

use serde::{Deserialize, Serialize};

/// An active policy of `uncork steer`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
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
    /// What it means for `connections`, which the policy's program sees, too.
    pub fn effect(&self, connections: &str) -> String {
        let name = self.name.as_ref().map(|name| format!(" `{name}`")).unwrap_or_default();
        let (order, winner) =
            if self.is_last { ("after", "its") } else { ("before", "the policy's") };
        format!(
            "program{name} runs {order} the policy's for {connections}: if it chooses a controller, {winner} counts"
        )
    }

    /// The effect, and the command that shows the program.
    pub fn warning(&self) -> String {
        let effect = self.effect("the same connections");
        format!("another {effect} (bpftool prog show id {})", self.number)
    }
}
