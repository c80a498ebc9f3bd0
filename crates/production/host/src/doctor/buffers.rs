//! Checks whether buffers are large enough: for the bandwidth-delay product (BDP) of the paths, and before anyone connects.

use super::boot_value::is_ordered;
use super::finding::{Finding, connections};
use super::sockets;
use super::{ExaminedHost, FindingId};

const SEND: &str = "net.ipv4.tcp_wmem";
const RECEIVE: &str = "net.ipv4.tcp_rmem";
const MEMORY: &str = "net.ipv4.tcp_mem";
/// Share of the time in which a connection had data to send.
const MUCH_LIMITED: f64 = 0.1;
/// Connections that were busy for less time are ignored, in milliseconds.
const ENOUGH_BUSY: u64 = 1_000;
/// The kernel's own maximum is 4 MiB for sending and 6 MiB for receiving, less with little memory: 1 MiB with 128 MiB
/// (linux net/ipv4/tcp.c, `tcp_init`).
const MIN_MAXIMUM: u64 = 1 << 20;
/// The kernel's values of [`SEND`] and [`RECEIVE`], with enough memory.
const USUAL_SEND: [u64; 3] = [4_096, 16_384, 4 << 20];
const USUAL_RECEIVE: [u64; 3] = [4_096, 131_072, 6 << 20];
/// `net.ipv4.tcp_mem` counts pages.
const PAGE: u64 = 4_096;
/// The RTT for which a rate is given.
const RTT_MS: u64 = 50;

pub(super) fn check(host: ExaminedHost<'_>, findings: &mut Vec<Finding>) {
    let of_connections = small_for_paths(host);
    let is_reported = of_connections.is_some();
    findings.extend(of_connections);
    findings.extend([SEND, RECEIVE, MEMORY].iter().filter_map(|key| unordered(host, key)));
    if !is_reported {
        findings.extend(small(host, SEND, FindingId::SendBufferTooSmall, "sends"));
    }
    findings.extend(small(host, RECEIVE, FindingId::ReceiveBufferTooSmall, "receives"));
    findings.extend(little_memory(host));
}

/// What a connection's buffer must hold, in BDPs. Linux allows twice the window (`tcp_sndbuf_expand`), and CUBIC's window is at least
/// a BDP; BBR asks for three times the window (`bbr_sndbuf_expand`), which is two BDP.
fn buffer_per_bdp(host: ExaminedHost<'_>) -> (u64, &'static str) {
    if host.wants_bbr() {
        (
            6,
            "BBR needs 6 BDP of buffer to fill a path: twice the BDP in flight, and three times that in the buffer.",
        )
    } else {
        (2, "A window of one BDP fills a path, and the buffer needs twice the window.")
    }
}

fn small_for_paths(host: ExaminedHost<'_>) -> Option<Finding> {
    let [least, usual, maximum] = host.own.triple(SEND)?;
    let (per_bdp, why) = buffer_per_bdp(host);
    let (mut limited, mut too_large, mut largest) = (0, 0, 0);
    for socket in sockets::remote(host.own).filter(|socket| socket.busy_ms >= ENOUGH_BUSY) {
        let share = socket.sndbuf_limited_ms as f64 / socket.busy_ms as f64;
        limited += usize::from(share > MUCH_LIMITED);
        let bdp = socket.bandwidth.zip(socket.min_rtt_us);
        let bdp = bdp.map_or(0, |(bandwidth, rtt)| bandwidth.saturating_mul(rtt) / 1_000_000);
        too_large += usize::from(bdp.saturating_mul(per_bdp) > maximum);
        largest = bdp.max(largest);
    }
    if limited == 0 && too_large == 0 {
        return None;
    }
    let wanted = largest.saturating_mul(per_bdp).max(maximum.saturating_mul(2));
    let wanted = wanted.max(MIN_MAXIMUM).checked_next_power_of_two().unwrap_or(wanted);
    let what = if too_large > 0 {
        format!(
            "The send buffer is too small for the paths of {}: the largest BDP is {} kB, tcp_wmem allows {} kB.",
            connections(too_large),
            largest / 1000,
            maximum / 1000
        )
    } else {
        format!(
            "The send buffer limits {} for more than a tenth of the busy time.",
            connections(limited)
        )
    };
    let why = format!("{why} It limited {}.", connections(limited));
    let finding = Finding::warning(FindingId::SendBufferTooSmall, what).why(why);
    let finding = if limited > 0 { finding } else { finding.likely() };
    Some(finding.remedy(format!("sysctl -w {SEND}=\"{least} {usual} {wanted}\"")))
}

/// A maximum below that of the smallest usual host: it limits every connection, also before there is one.
fn small(host: ExaminedHost<'_>, key: &str, id: FindingId, does: &str) -> Option<Finding> {
    let [least, usual, maximum] = host.own.triple(key)?;
    if maximum >= MIN_MAXIMUM {
        return None;
    }
    // Half of a buffer is for the kernel's own data about packets (`tcp_adv_win_scale`, `SKB_TRUESIZE`).
    let rate = maximum as f64 / 2.0 * 8.0 / RTT_MS as f64 / 1_000.0;
    let what = format!(
        "A connection {does} at most about {rate:.1} Mbit/s at an RTT of {RTT_MS} ms: {key} allows {} kB.",
        maximum / 1_000
    );
    let [_, _, wanted] = usual_of(key);
    Some(
        Finding::warning(id, what)
            .why("The last number is the largest buffer that TCP chooses by itself; the kernel's own is 4 to 6 MB.")
            .remedy(format!("sysctl -w {key}=\"{least} {usual} {wanted}\"")),
    )
}

/// A minimum above the default, or a default above the maximum, as after `tcp_wmem = 16777216`.
fn unordered(host: ExaminedHost<'_>, key: &str) -> Option<Finding> {
    let text = host.own.sysctls.get(key)?;
    if host.own.triple(key).is_some_and(is_ordered) {
        return None;
    }
    let what = format!("{key} is `{text}`: its three numbers must rise.");
    Some(
        Finding::warning(FindingId::MalformedTriple, what)
            .why("They are a minimum, a default and a maximum. A single number sets the minimum alone.")
            .remedy(format!("sysctl -w {key}=\"{}\"", well_formed(key, text))),
    )
}

/// What was meant by a malformed value: its largest number as the maximum.
pub(super) fn well_formed(key: &str, text: &str) -> String {
    let words = text.split_ascii_whitespace();
    let largest = words.filter_map(|word| word.parse::<u64>().ok()).max().unwrap_or(0);
    if key == MEMORY {
        return format!("{} {largest} {}", largest / 4 * 3, largest.saturating_mul(3) / 2);
    }
    let [least, usual, maximum] = usual_of(key);
    let maximum = if largest > usual { largest } else { maximum };
    format!("{least} {usual} {maximum}")
}

fn usual_of(key: &str) -> [u64; 3] {
    if key == RECEIVE { USUAL_RECEIVE } else { USUAL_SEND }
}

/// The memory of all sockets of the host is less than one connection's buffer.
fn little_memory(host: ExaminedHost<'_>) -> Option<Finding> {
    let [_, pressure, maximum] = host.own.triple(MEMORY)?;
    let buffer = host.own.triple(SEND).map_or(MIN_MAXIMUM, |[_, _, maximum]| maximum);
    let needed = buffer.min(USUAL_SEND[2]);
    if pressure.saturating_mul(PAGE) >= needed {
        return None;
    }
    let what = format!(
        "All TCP connections of this host together may have {} kB of buffers ({MEMORY}).",
        maximum.saturating_mul(PAGE) / 1_000
    );
    Some(
        Finding::warning(FindingId::TcpMemoryTooSmall, what)
            .why(
                "It counts pages, not bytes. Above the second number windows shrink; above the third packets are \
                 dropped. The kernel's own is about a tenth of the memory.",
            )
            .remedy(format!(
                "set a tenth of the memory: m=$(awk '/MemTotal/ {{print int($2/40)}}' /proc/meminfo); \
                 sysctl -w {MEMORY}=\"$((m/2)) $((m*2/3)) $m\""
            )),
    )
}
