//! Checks programs that see the same connections as a policy of `uncork steer`.

use uncork_cc::Missing;
use uncork_policy::ActivePolicy;

use super::finding::Finding;
use super::{ExaminedHost, FindingId};

pub(super) fn check(host: ExaminedHost<'_>, findings: &mut Vec<Finding>) {
    findings.extend(host.facts.policies.iter().filter_map(|policy| unloaded(host, policy)));
    for other in &host.facts.other_programs {
        let effect = other.effect(&format!("connections of {}", other.cgroup));
        let what = format!("Another BPF {effect}.");
        let id = FindingId::OtherProgramAtCgroup;
        let finding =
            if other.is_last { Finding::warning(id, what) } else { Finding::note(id, what) };
        findings.push(
            finding
                .why("Programs of a cgroup run before those of the cgroups above it; the last choice is active.")
                .remedy(format!("bpftool prog show id {}", other.number)),
        );
    }
}

/// A policy goes on when a controller that it names is unloaded: then the kernel refuses each choice of it.
fn unloaded(host: ExaminedHost<'_>, policy: &ActivePolicy) -> Option<Finding> {
    let ActivePolicy { cgroup, policy, controllers } = policy;
    let missing: Vec<&String> = controllers.iter().filter(|name| !host.own.has(name)).collect();
    let first = missing.first()?;
    let names: Vec<_> = missing.iter().map(|name| name.as_str()).collect();
    let what =
        format!("The policy {policy} of {cgroup} names {}, which is not loaded.", names.join(", "));
    let finding = Finding::problem(FindingId::PolicyControllerMissing, what)
        .why("The kernel refuses the choice: these connections keep the default, and records call it theirs.");
    let finding = missing
        .iter()
        .fold(finding, |finding, name| finding.remedy(format!("For {name}: {}", Missing(name))));
    Some(finding.remedy(format!(
        "or take {first} out of the policy: uncork steer apply … --cgroup {cgroup}"
    )))
}
