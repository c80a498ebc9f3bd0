//! Checks whether send buffers are large enough for the bandwidth-delay product of the paths.

use super::Host;
use super::finding::{Finding, connections};
use super::sockets;

/// A send buffer must hold three windows (`bbr_sndbuf_expand`), and BBR's window is two BDP.
const BUFFER_PER_BDP: u64 = 6;
/// Share of the time in which a connection had data to send.
const MUCH_LIMITED: f64 = 0.1;
/// Connections that were busy for less time are ignored, in milliseconds.
const ENOUGH_BUSY: u64 = 1_000;

pub(super) fn check(host: Host<'_>, findings: &mut Vec<Finding>) {
    let Some(maximum) = send_maximum(host) else { return };
    let (mut limited, mut too_large, mut largest) = (0, 0, 0);
    for socket in sockets::remote(host.own).filter(|socket| socket.busy_ms >= ENOUGH_BUSY) {
        let share = socket.sndbuf_limited_ms as f64 / socket.busy_ms as f64;
        limited += usize::from(share > MUCH_LIMITED);
        let bdp = socket.bandwidth.zip(socket.min_rtt_us);
        let bdp = bdp.map_or(0, |(bandwidth, rtt)| bandwidth.saturating_mul(rtt) / 1_000_000);
        too_large += usize::from(bdp.saturating_mul(BUFFER_PER_BDP) > maximum);
        largest = bdp.max(largest);
    }
    if limited == 0 && too_large == 0 {
        return;
    }
    let wanted = largest.saturating_mul(BUFFER_PER_BDP).max(2 * maximum).next_power_of_two();
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
    let why = format!(
        "BBR needs {BUFFER_PER_BDP} BDP of buffer to fill a path: twice the BDP in flight, and three times \
         that in the buffer. It limited {}.",
        connections(limited)
    );
    let fields = host.own.sysctls.get("net.ipv4.tcp_wmem");
    let mut fields = fields.map(String::as_str).unwrap_or_default().split_ascii_whitespace();
    let (least, usual) = (fields.next().unwrap_or("4096"), fields.next().unwrap_or("16384"));
    let finding = Finding::warning("send-buffer-too-small", what).why(why);
    let finding = if limited > 0 { finding } else { finding.likely() };
    findings
        .push(finding.remedy(format!("sysctl -w net.ipv4.tcp_wmem=\"{least} {usual} {wanted}\"")));
}

fn send_maximum(host: Host<'_>) -> Option<u64> {
    host.own.sysctls.get("net.ipv4.tcp_wmem")?.split_ascii_whitespace().nth(2)?.parse().ok()
}
