//! Checks the algorithms of the sockets.

use std::collections::BTreeMap;
use std::net::IpAddr;

use uncork_policy::Settings;

use super::boot_value::DEFAULT;
use super::finding::{Finding, connections};
use super::{ExaminedHost, FindingId};
use crate::facts::{Namespace, Socket};

/// Retransmission rates are compared between groups that sent at least this many bytes.
const ENOUGH_BYTES: u64 = 10_000_000;

pub(super) fn check(host: ExaminedHost<'_>, findings: &mut Vec<Finding>) {
    findings.extend(old(host));
    findings.extend(listeners(host));
    findings.extend(without_accecn(host));
    findings.extend(bursts(host));
    findings.extend(retransmissions(host));
}

/// Connections to other hosts.
pub(super) fn remote(namespace: &Namespace) -> impl Iterator<Item = &Socket> {
    namespace.connections().filter(|socket| !is_loopback(socket))
}

fn is_loopback(socket: &Socket) -> bool {
    let loops = |ip: IpAddr| ip.to_canonical().is_loopback();
    loops(socket.local.ip()) || socket.remote.is_some_and(|remote| remote.ip() == socket.local.ip())
}

/// Established connections keep their algorithm when the default changes.
fn old(host: ExaminedHost<'_>) -> Option<Finding> {
    let ExaminedHost { own, .. } = host;
    let default = &own.default;
    let mut others: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut count, mut oldest) = (0, 0);
    for socket in remote(own) {
        count += 1;
        if socket.cc != *default && !is_chosen(host, socket) {
            *others.entry(&socket.cc).or_default() += 1;
            oldest = oldest.max(socket.age_s);
        }
    }
    let total: usize = others.values().sum();
    if total == 0 {
        return None;
    }
    let names: Vec<_> = others.iter().map(|(name, count)| format!("{count} {name}")).collect();
    let age = match oldest {
        0 => String::new(),
        _ => format!("; the oldest for at least {}", span(oldest)),
    };
    let what = format!(
        "{default} is the default, but {total} of {count} connections run another algorithm ({}){age}.",
        names.join(", ")
    );
    Some(
        Finding::warning(FindingId::OldSockets, what)
            .likely()
            .why(
                "A connection keeps the algorithm that it began with, unless its program changes it. Until \
                 these end, the host runs a mixture.",
            )
            .remedy("Wait, or close them: restart or drain the programs that hold them.")
            .remedy(format!("ss -tinp state established | grep -B1 -w {}", others.keys().next()?)),
    )
}

/// Whether a route explains a connection's algorithm.
fn is_chosen(host: ExaminedHost<'_>, socket: &Socket) -> bool {
    host.own.routes.iter().any(|route| route.congctl == socket.cc)
}

/// Listeners with another algorithm than the default: set with setsockopt, or opened before the default changed.
/// AccECN (RFC 9768) is negotiated by the listener's controller, before a connection has its own.
fn without_accecn(host: ExaminedHost<'_>) -> Vec<Finding> {
    const L4S: &str = Settings::L4S_TCP;
    let others = host.own.listeners().filter(|listener| listener.cc != L4S);
    let ports: BTreeMap<u16, &str> =
        others.map(|listener| (listener.local.port(), listener.cc.as_str())).collect();
    let finding = |(port, cc): (u16, &str)| {
        let accepted = remote(host.own).filter(|socket| socket.local.port() == port);
        let count = accepted.filter(|socket| socket.cc == L4S).count();
        let what =
            format!("{} on port {port} run {L4S}, and the listener has {cc}.", connections(count));
        (count > 0).then(|| {
            Finding::warning(FindingId::L4sNotNegotiated, what)
                .why(
                    "The listener's controller negotiates AccECN. Without AccECN, Prague is CUBIC with pacing, and sends no \
                     ECT(1).",
                )
                .remedy(format!("uncork steer apply, with a policy that has tcp = \"{L4S}\""))
                .remedy(format!("or uncork kernel load --default {L4S}, then restart the server"))
        })
    };
    ports.into_iter().filter_map(finding).collect()
}

/// Two packets of 1,500 bytes take more than DualPI2's step of 1 ms on links below 24 Mbit/s, so the second is marked.
fn bursts(host: ExaminedHost<'_>) -> Option<Finding> {
    const KEY: &str = "net.ipv4.tcp_min_tso_segs";
    const L4S: &str = Settings::L4S_TCP;
    let segments = host.own.number(KEY).filter(|segments| *segments > 1)?;
    let count = remote(host.own).filter(|socket| socket.cc == L4S).count();
    if count == 0 {
        return None;
    }
    let run = connections(count);
    let what =
        format!("{run} run {L4S}, and Linux sends at least {segments} segments at once ({KEY}).");
    Some(
        Finding::note(FindingId::L4sBursts, what)
            .why(
                "Below 24 Mbit/s two segments take longer than a queue for L4S accepts without a mark. So these connections wait \
                 longer, and get a smaller share next to others.",
            )
            .remedy(format!("sysctl -w {KEY}=1")),
    )
}

fn listeners(host: ExaminedHost<'_>) -> Vec<Finding> {
    let default = &host.own.default;
    let different = host.own.listeners().filter(|listener| listener.cc != *default);
    let mut seen = BTreeMap::new();
    for listener in different {
        seen.entry((listener.local.port(), listener.cc.clone())).or_insert(listener);
    }
    let finding = |(port, cc): &(u16, String)| {
        let accepted = || remote(host.own).filter(|socket| socket.local.port() == *port);
        let keeps = accepted().any(|socket| socket.cc == *cc);
        let follows = accepted().any(|socket| socket.cc == *default);
        let is_unseen = !keeps && !follows;
        let what = format!("The listener on port {port} is set to {cc}; the default is {default}.");
        if keeps && !follows {
            Finding::warning(FindingId::ListenerDiffers, what)
                .possible()
                .why(format!(
                    "All its connections run {cc}. Either they are all older than the default, or the program \
                     sets TCP_CONGESTION."
                ))
                .remedy(format!("Open a new connection and run: ss -tin sport = :{port}"))
                .remedy(format!("If it still runs {cc}: change it in the program's configuration."))
        } else if is_unseen && !was_default(host, cc) {
            Finding::warning(FindingId::ListenerDiffers, what)
                .possible()
                .why(format!(
                    "It has no connection, and nothing shows that {cc} was the default here: probably the program sets \
                     TCP_CONGESTION, and its connections run {cc}."
                ))
                .remedy(format!("Open a connection and run: ss -tin sport = :{port}"))
                .remedy(format!("If it runs {cc}: change it in the program's configuration."))
        } else {
            let finding = Finding::note(FindingId::ListenerOlderThanDefault, what);
            if is_unseen {
                finding.possible().why(format!(
                    "Opened before the default changed, it accepts connections with {default} all the same. It has no \
                     connection: if the program sets TCP_CONGESTION, they run {cc}. ss -tin sport = :{port} shows it."
                ))
            } else {
                finding.likely().why(format!(
                    "Opened before the default changed: it accepts connections with {default} all the same, and \
                     needs no restart."
                ))
            }
        }
    };
    seen.keys().map(finding).collect()
}

/// Whether an algorithm may have been the default before: the kernel's own, one of the boot configuration, or that of an open
/// connection. A listener that is older than the default has such a one.
fn was_default(host: ExaminedHost<'_>, cc: &str) -> bool {
    let facts = host.facts;
    let compiled = facts.kernel.compiled_default.as_deref().unwrap_or("cubic");
    let mut at_boot = facts.boot_sysctls.iter();
    compiled == cc
        || at_boot.any(|line| line.key == DEFAULT && line.value == cc)
        || remote(host.own).any(|socket| socket.cc == cc)
}

/// BBRv1 keeps its rate even if it causes losses.
fn retransmissions(host: ExaminedHost<'_>) -> Option<Finding> {
    let share = |is_bbr: bool| {
        let group = remote(host.own)
            .filter(|socket| (socket.bbr.is_some_and(|bbr| bbr.version == 1)) == is_bbr);
        let (sent, again) = group.fold((0, 0), |(sent, again), socket| {
            (sent + socket.sent, again + socket.retransmitted)
        });
        (sent >= ENOUGH_BYTES).then(|| again as f64 / sent as f64)
    };
    let (bbr, others) = (share(true)?, share(false).unwrap_or(0.0));
    (bbr > (2.0 * others).max(0.02)).then(|| {
        let what = format!(
            "BBRv1 connections retransmit {:.1} % of their bytes; the others {:.1} %.",
            100.0 * bbr,
            100.0 * others
        );
        Finding::warning(FindingId::Bbr1Loses, what)
            .possible()
            .why(
                "BBRv1 does not slow down for losses below 20 %. Where the bottleneck's buffer is shallow, \
                 it causes them itself, for everyone there.",
            )
            .remedy("Find the prefixes: ss -tin | grep bbr; give them cubic: ip route … congctl cubic")
            .remedy("Compare with `uncork compare --buffer 0.1bdp`.")
    })
}

/// A duration in readable units.
fn span(seconds: u64) -> String {
    let (amount, unit) = match seconds {
        0..120 => (seconds, "s"),
        120..7_200 => (seconds / 60, "min"),
        7_200..172_800 => (seconds / 3_600, "h"),
        _ => (seconds / 86_400, "days"),
    };
    format!("{amount} {unit}")
}
