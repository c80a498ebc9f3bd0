//! Checks what the host's own interfaces do to packets: shape them, drop them, cut them small.

use super::finding::Finding;
use super::routes::MIN_MTU;
use super::{ExaminedHost, FindingId};
use crate::facts::Interface;

/// Disciplines that exist to limit the rate, or to emulate a network. `cake` shapes only with a bandwidth, `htb` and `hfsc` in
/// their classes.
const SHAPERS: [&str; 6] = ["tbf", "htb", "hfsc", "cbq", "netem", "cake"];
/// Share of packets dropped that is worth a finding, and the fewest drops.
const MUCH_DROPPED: f64 = 0.005;
const ENOUGH_DROPPED: u64 = 100;

pub(super) fn check(host: ExaminedHost<'_>, findings: &mut Vec<Finding>) {
    for interface in host.own.interfaces.iter().filter(|it| it.is_up && it.name != "lo") {
        findings.extend(shaped(interface));
        findings.extend(drops(interface));
        findings.extend(small_mtu(interface));
    }
}

fn shaped(interface: &Interface) -> Option<Finding> {
    let Interface { name, qdisc, leaves, shaped_rate, .. } = interface;
    let kinds = || std::iter::once(qdisc).chain(leaves);
    let kind = kinds().find(|kind| SHAPERS.contains(&kind.as_str()))?;
    if kind == "cake" && shaped_rate.is_none() {
        return None;
    }
    let to = shaped_rate
        .map(|rate| format!(" to {:.1} Mbit/s", rate as f64 * 8.0 / 1e6))
        .unwrap_or_default();
    let what = if kind == "netem" {
        format!("{name} emulates a network (netem): it delays or drops this host's own packets.")
    } else {
        format!("This host shapes {name}{to} itself ({kind}).")
    };
    let finding = Finding::warning(FindingId::InterfaceShaped, what)
        .why("It bounds all connections together, and looks like a slow network from every one of them.")
        .remedy(format!("tc -s qdisc show dev {name}; tc -s class show dev {name}"))
        .remedy(format!("If it is not meant: tc qdisc del dev {name} root"));
    Some(if shaped_rate.is_some() || kind == "tbf" { finding } else { finding.likely() })
}

fn drops(interface: &Interface) -> Option<Finding> {
    let Interface { name, qdisc, .. } = interface;
    let (sent, dropped) = interface.sent_packets.zip(interface.dropped_packets)?;
    let share = dropped as f64 / (sent + dropped).max(1) as f64;
    if dropped < ENOUGH_DROPPED || share < MUCH_DROPPED {
        return None;
    }
    let what = format!(
        "{name} has dropped {:.1} % of this host's own packets before sending them ({dropped}; {qdisc}).",
        100.0 * share
    );
    Some(
        Finding::warning(FindingId::InterfaceDrops, what)
            .likely()
            .why(
                "The counts are since the discipline was made. Losses in the host itself look like those of the network: \
                 the queue is too short, or a shaper or a policer is on it.",
            )
            .remedy(format!("tc -s qdisc show dev {name}, twice: whether `dropped` rises")),
    )
}

fn small_mtu(interface: &Interface) -> Option<Finding> {
    let Interface { name, mtu, .. } = interface;
    let mtu = mtu.filter(|mtu| *mtu < MIN_MTU)?;
    let what = format!("The MTU of {name} is {mtu} bytes.");
    Some(
        Finding::warning(FindingId::MtuSmall, what)
            .why(
                "IPv6 needs 1280 (RFC 8200, section 5), Ethernet has 1500. Each packet has a header of 40 bytes or more, and a \
                 congestion window counts packets.",
            )
            .remedy(format!("ip link set dev {name} mtu 1500")),
    )
}
