//! Checks programs that see the same connections as a policy of `uncork steer`.

use super::Host;
use super::finding::Finding;

pub(super) fn check(host: Host<'_>, findings: &mut Vec<Finding>) {
    for other in &host.facts.other_programs {
        let name = other.name.as_deref().map(|name| format!(" `{name}`")).unwrap_or_default();
        let cgroup = &other.cgroup;
        let (order, winner) =
            if other.is_last { ("after", "its") } else { ("before", "the policy's") };
        let what = format!(
            "Another BPF program{name} runs {order} the policy's for connections of {cgroup}: if it chooses a controller, {winner} counts."
        );
        let id = "other-program-at-cgroup";
        let finding =
            if other.is_last { Finding::warning(id, what) } else { Finding::note(id, what) };
        findings.push(
            finding
                .why("Programs of a cgroup run before those of the cgroups above it; the last choice is in force.")
                .remedy(format!("bpftool prog show id {}", other.number)),
        );
    }
}
