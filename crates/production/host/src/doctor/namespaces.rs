//! Checks other network namespaces.

use std::collections::BTreeMap;

use super::finding::Finding;
use super::{ExaminedHost, FindingId};
use crate::facts::{HIDDEN, Namespace};

/// Most namespaces that a finding names by their processes.
const NAMED: usize = 4;

pub(super) fn check(host: ExaminedHost<'_>, findings: &mut Vec<Finding>) {
    let ExaminedHost { facts, wanted, .. } = host;
    let mut others: BTreeMap<&str, Vec<&Namespace>> = BTreeMap::new();
    for namespace in facts.namespaces.iter().skip(1).filter(|other| other.default != wanted) {
        others.entry(&namespace.default).or_default().push(namespace);
    }
    let report = if host.own.is_initial { differs } else { differs_outside };
    findings.extend(others.iter().map(|(default, namespaces)| report(wanted, default, namespaces)));
    findings.extend(not_examined(host));
}

/// From within a namespace others are none of its business, and the host is one of them: only the host's root may want them all alike.
fn differs_outside(wanted: &str, default: &str, namespaces: &[&Namespace]) -> Finding {
    Finding::note(FindingId::NamespaceDiffers, differing(wanted, default, namespaces)).why(
        "Each namespace has a default of its own. This one was asked about; a change here does not change the others, \
         nor the host.",
    )
}

fn differing(wanted: &str, default: &str, namespaces: &[&Namespace]) -> String {
    let names: Vec<_> = namespaces.iter().take(NAMED).map(|it| name(it)).collect();
    match (&names[..], namespaces.len()) {
        ([name], _) => format!("The namespace of {name} defaults to {default}, not {wanted}."),
        (names, all) => {
            let more = all - names.len();
            let more = if more == 0 { String::new() } else { format!("; and {more} more") };
            let names = names.join("; ");
            format!("{all} namespaces default to {default}, not {wanted}: those of {names}{more}.")
        }
    }
}

/// Namespaces with the same default, which is not the wanted one: a node may have a hundred pods.
fn differs(wanted: &str, default: &str, namespaces: &[&Namespace]) -> Finding {
    let what = differing(wanted, default, namespaces);
    let set = format!("sysctl -w net.ipv4.tcp_congestion_control={wanted}");
    let files: Vec<_> = namespaces.iter().map(|it| file(it)).collect();
    let remedy = match &files[..] {
        [file] => format!("nsenter --net={file} {set}"),
        files => format!("for net in {}; do nsenter --net=$net {set}; done", files.join(" ")),
    };
    Finding::warning(FindingId::NamespaceDiffers, what)
        .why("A namespace copies the host's default when it is made; later changes of the host's do not reach it.")
        .remedy(remedy)
        .remedy("or restart the containers")
}

pub(super) fn name(namespace: &Namespace) -> String {
    if namespace.is_initial {
        return "the host".to_owned();
    }
    match &namespace.processes[..] {
        [] => format!("net:[{}]", namespace.inode),
        processes => processes.join(", "),
    }
}

/// A file that nsenter(1) can enter: that of a process, `nginx (812)`, or one that `ip netns` made, `netns web`.
fn file(namespace: &Namespace) -> String {
    let first = namespace.processes.first().map_or("", String::as_str);
    // A process may be called `netns …`, so its number counts first.
    let pid =
        first.rsplit_once('(').and_then(|(_, pid)| pid.strip_suffix(')')?.parse::<u32>().ok());
    match (pid, first.strip_prefix("netns ")) {
        (Some(pid), _) => format!("/proc/{pid}/ns/net"),
        (None, Some(name)) => format!("/run/netns/{name}"),
        (None, None) => "/proc/PID/ns/net".to_owned(),
    }
}

fn not_examined(host: ExaminedHost<'_>) -> Option<Finding> {
    let facts = host.facts;
    let unread = facts.unread_namespaces.len();
    let of_namespaces = facts.unread_namespaces.keys();
    let mut reasons = of_namespaces.chain([&HIDDEN]).filter_map(|it| facts.unread_reasons.get(it));
    let reason = reasons.next();
    let what = if unread > 0 {
        let processes = facts.unread_namespaces.values().flatten().take(4).cloned();
        let processes = processes.collect::<Vec<_>>().join(", ");
        format!("{unread} other network namespaces were not examined: {processes}.")
    } else if facts.hidden_processes > 0 {
        let hidden = facts.hidden_processes;
        format!("{hidden} processes of other users may be in network namespaces of their own.")
    } else {
        return None;
    };
    let finding = Finding::note(FindingId::NamespacesNotExamined, what);
    Some(match reason {
        Some(reason) => finding.why(format!("They cannot be read: {reason}.")),
        None => finding.why("Only root can look there.").remedy("sudo uncork host doctor"),
    })
}
