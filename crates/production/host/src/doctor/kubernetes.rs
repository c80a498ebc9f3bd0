//! Checks a Kubernetes pod. Its default algorithm is its own, what it may choose from is the node's.

use super::finding::Finding;
use super::{ExaminedHost, FindingId};
use crate::facts::{Container, Interface};

pub(super) fn check(host: ExaminedHost<'_>, findings: &mut Vec<Finding>) {
    if host.facts.container == Some(Container::Kubernetes) {
        findings.push(if host.own.is_initial { on_the_node() } else { scope(host) });
    }
    if is_pod(host) {
        findings.extend(pacing(host));
    }
}

/// Whether the caller is in a pod with a network namespace of its own.
pub(super) fn is_pod(host: ExaminedHost<'_>) -> bool {
    host.facts.container == Some(Container::Kubernetes) && !host.own.is_initial
}

/// With the steps that give a pod the wanted default.
pub(super) fn with_remedies(finding: Finding, wanted: &str) -> Finding {
    let finding = finding
        .remedy(format!(
            "on the node, then delete the pod, so that it is created again: sysctl -w \
             net.ipv4.tcp_congestion_control={wanted}"
        ))
        .remedy(format!(
            "or for this pod alone, in its spec: securityContext: {{sysctls: [{{name: \
             net.ipv4.tcp_congestion_control, value: {wanted}}}]}}; the node's kubelet needs \
             --allowed-unsafe-sysctls=net.ipv4.tcp_congestion_control, or the pod fails with SysctlForbidden"
        ));
    if wanted != "bbr" {
        return finding;
    }
    finding.remedy(
        "or with Cilium, for pods made from then on: bandwidthManager.enabled=true and bandwidthManager.bbr=true",
    )
}

fn on_the_node() -> Finding {
    Finding::note(FindingId::PodUsesNodeNetwork, "This pod has the network namespace of its node (hostNetwork).").why(
        "This report is about the node: a change of the default changes it for the node and for pods made \
         later. /proc/sys is read-only in a container that is not privileged.",
    )
}

fn scope(host: ExaminedHost<'_>) -> Finding {
    let default = &host.own.default;
    Finding::note(
        FindingId::PodHasOwnDefault,
        format!("New connections of this pod run {default}; other pods and the node may differ."),
    )
    .why(
        "A pod copies the node's default when it is made: net.ipv4.tcp_congestion_control belongs to its network \
         namespace. It is not in the kubelet's list of safe sysctls, so a pod may set it only if the kubelet allows \
         it by name. net.ipv4.tcp_allowed_congestion_control, loaded modules and net.core.default_qdisc are the node's.",
    )
}

/// A pod's end of a veth has no queue.
fn pacing(host: ExaminedHost<'_>) -> Option<Finding> {
    let is_unqueued = |it: &&Interface| it.is_up && it.name != "lo" && it.qdisc == "noqueue";
    let names = host.own.interfaces.iter().filter(is_unqueued).map(|it| it.name.as_str());
    let names: Vec<_> = names.collect();
    if names.is_empty() || !host.wants_bbr() || host.is_before((4, 13)) {
        return None;
    }
    let why = if host.is_before((5, 18)) {
        "Correct: BBR does not need fq. fq on the node cannot pace it: before Linux 5.18 packets lose their departure \
         time on the way out of the pod."
    } else {
        "Correct: BBR does not need fq, and in a pod it has nowhere to be. fq on the node's interface paces pods, too, \
         if their packets keep their socket on the way, as with Cilium's bandwidth manager and eBPF host routing."
    };
    let what = format!("TCP paces by its own timers on {} (noqueue).", names.join(", "));
    Some(Finding::note(FindingId::PodPacesItself, what).why(why))
}
