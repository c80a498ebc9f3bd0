//! Checks how packets are paced: by fq, or by a timer per socket.

use super::finding::{Finding, connections};
use super::{ExaminedHost, FindingId};
use crate::facts::Interface;

/// With more sockets, a timer per socket costs noticeable CPU time.
const MANY: usize = 1_000;

/// The hardware interfaces that could have fq as their queue. One with `noqueue` queues by itself: Wi-Fi keeps a queue for each
/// station, with CoDel (linux net/mac80211/tx.c), and a discipline in front of it takes that away.
pub(super) fn without_fq(host: ExaminedHost<'_>) -> impl Iterator<Item = &Interface> {
    let hardware = host.own.interfaces.iter().filter(|it| it.is_up && !it.is_virtual);
    hardware.filter(|it| !it.has_fq() && it.qdisc != "noqueue")
}

/// The interfaces of hardware that queue by themselves.
fn own_queues(host: ExaminedHost<'_>) -> Option<Finding> {
    let hardware = host.own.interfaces.iter().filter(|it| it.is_up && !it.is_virtual);
    let names: Vec<_> = hardware.filter(|it| it.qdisc == "noqueue").map(shown).collect();
    if names.is_empty() || !host.wants_bbr() || host.is_before((4, 13)) {
        return None;
    }
    let what = format!("TCP paces by its own timers on {}.", names.join(", "));
    let why = "Correct since Linux 4.13. Leave noqueue there: Wi-Fi drivers have a queue of their own for each station.";
    Some(Finding::note(FindingId::InternalPacing, what).why(why))
}

pub(super) fn check(host: ExaminedHost<'_>, findings: &mut Vec<Finding>) {
    findings.extend(own_queues(host));
    let without_fq: Vec<&Interface> = without_fq(host).collect();
    if without_fq.is_empty() {
        return;
    }
    let names: Vec<_> = without_fq.iter().map(|interface| shown(interface)).collect();
    let names = names.join(", ");
    let replace = |finding: Finding| {
        without_fq.iter().map(|interface| replacing(interface)).fold(finding, Finding::remedy)
    };
    if host.own.sysctls.get("net.core.default_qdisc").is_some_and(|qdisc| qdisc == "fq") {
        let what = format!("net.core.default_qdisc is fq, but not in use on {names}.");
        findings.push(replace(
            Finding::warning(FindingId::FqNotInUse, what).why(
                "The sysctl applies to queue disciplines created later, not to those in place.",
            ),
        ));
        return;
    }
    let capped = host.own.connections().filter(|socket| socket.pacing_cap.is_some()).count();
    let paced =
        host.own.connections().filter(|socket| socket.bbr.is_some() || socket.pacing_cap.is_some());
    let paced = paced.count();
    let has_caps =
        format!("SO_MAX_PACING_RATE limits {}, without fq on {names}.", connections(capped));
    if capped > 0 && host.is_before((4, 13)) {
        let finding = Finding::problem(FindingId::PacingCapIgnored, has_caps);
        findings.push(replace(
            finding.why("Before Linux 4.13 only fq paces: the caps have no effect."),
        ));
    } else if capped > 0 {
        findings.push(replace(
            Finding::warning(FindingId::PacingCapsWithoutFq, has_caps).possible().why(
                "TCP paces them by a timer each. If fq was there when they began and was removed since, \
                 nothing paces them any more: fq sets a flag on a socket that is never cleared.",
            ),
        ));
    } else if paced > MANY {
        let what = format!("{paced} paced connections, and no fq on {names}.");
        findings.push(replace(Finding::warning(FindingId::ManyTimers, what).likely().why(
            "Each has a timer of its own. With more than a thousand, fq takes less CPU time.",
        )));
    } else if host.wants_bbr() && !host.is_before((4, 13)) {
        let what = format!("TCP paces by its own timers on {names}.");
        findings.push(
            Finding::note(FindingId::InternalPacing, what)
                .why("Correct since Linux 4.13: BBR does not need fq. fq takes less CPU time on busy servers."),
        );
    }
}

/// Its name, and who queues its packets: `eth0 (mq of fq_codel)`.
fn shown(interface: &Interface) -> String {
    let Interface { name, qdisc, leaves, .. } = interface;
    let mut kinds = leaves.clone();
    kinds.sort_unstable();
    kinds.dedup();
    let below = if kinds.is_empty() { String::new() } else { format!(" of {}", kinds.join(", ")) };
    format!("{name} ({qdisc}{below})")
}

/// A device with several queues keeps them: a new `mq` has the default discipline below it.
pub(super) fn replacing(interface: &Interface) -> String {
    let name = &interface.name;
    if interface.qdisc == "mq" {
        format!("sysctl -w net.core.default_qdisc=fq; tc qdisc replace dev {name} root mq")
    } else {
        format!("tc qdisc replace dev {name} root fq")
    }
}
