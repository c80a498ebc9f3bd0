//! Checks other network namespaces.

use super::Host;
use super::finding::Finding;

pub(super) fn check(host: Host<'_>, findings: &mut Vec<Finding>) {
    let Host { facts, wanted, .. } = host;
    for namespace in facts.namespaces.iter().skip(1).filter(|other| other.default != wanted) {
        let who = match &namespace.processes[..] {
            [] => format!("net:[{}]", namespace.inode),
            processes => processes.join(", "),
        };
        let pid = namespace.processes.first().and_then(|text| text.rsplit('(').next());
        let pid = pid.map_or("PID", |text| text.trim_end_matches(')'));
        let what =
            format!("The namespace of {who} defaults to {}, not {wanted}.", namespace.default);
        findings.push(
            Finding::warning("namespace-differs", what)
                .why(
                    "A namespace copies the host's default when it is made; later changes of the host's \
                     do not reach it.",
                )
                .remedy(format!(
                    "nsenter --net=/proc/{pid}/ns/net sysctl -w net.ipv4.tcp_congestion_control={wanted}"
                ))
                .remedy("or start the container anew"),
        );
    }
    findings.extend(not_examined(host));
}

fn not_examined(host: Host<'_>) -> Option<Finding> {
    let facts = host.facts;
    let unread = facts.unread_namespaces.len();
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
    let finding = Finding::note("namespaces-not-examined", what);
    Some(finding.why("Only root can look there.").remedy("sudo uncork host doctor"))
}
