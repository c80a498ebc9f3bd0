//! What uncork's own transport tells of a connection.

use std::time::Duration;

use uncork_quic::Observation;
use uncork_units::TimeDelta;

use super::busy::Busy;
use crate::evidence::Figures;

/// All that records and metrics say, of a connection that has sent so many packets.
pub(super) fn figures(seen: &Observation, packets_sent: u64, busy: Busy) -> Figures {
    let nanos = |time: Duration| TimeDelta::from_nanos(time.as_nanos() as u64);
    Figures {
        bytes_acked: seen.acked_bytes,
        bytes_sent: seen.sent_bytes,
        bytes_retransmitted: seen.lost_bytes,
        packets_sent,
        packets_lost: seen.lost_packets,
        packets_marked: seen.ce_packets,
        // The stack does not tell.
        timeouts: 0,
        busy: nanos(busy.total),
        rwnd_limited: Some(nanos(busy.by_client)),
        sndbuf_limited: None,
        app_limited: Some(nanos(busy.by_application)),
        rtt: seen.rtt.map(|rtt| rtt.smoothed),
        min_rtt: seen.rtt.map(|rtt| rtt.min),
        delivery_rate: seen.delivery_rate,
    }
}

/// What `Server-Timing` says of the transport.
pub(super) fn timing(seen: &Observation) -> Option<String> {
    let rtt = seen.rtt?;
    let [smoothed, min] = [rtt.smoothed, rtt.min].map(TimeDelta::as_millis_f64);
    let pacing = seen.control.pacing_rate.map_or(String::new(), |rate| {
        format!(", pacing;desc=\"{:.2} Mbit/s\"", rate.bits_per_sec() as f64 / 1e6)
    });
    Some(format!("rtt;dur={smoothed:.2}, min-rtt;dur={min:.2}{pacing}"))
}
