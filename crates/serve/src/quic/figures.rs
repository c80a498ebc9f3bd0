//! What a connection has done so far.

use std::time::Duration;

use uncork_quic::Observation;

/// Counts of a connection since its beginning, and its round-trip times.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Figures {
    pub(super) sent_bytes: u64,
    pub(super) acked_bytes: u64,
    pub(super) lost_bytes: u64,
    pub(super) lost_packets: u64,
    pub(super) ce_packets: u64,
    pub(super) packets: u64,
    /// The last one, the smoothed one and the smallest, in nanoseconds.
    pub(super) rtt: Option<[u64; 3]>,
    /// Bits in a second.
    pub(super) pacing_rate: Option<u64>,
}

impl Figures {
    pub(super) fn new(observation: Option<&Observation>, packets: u64) -> Self {
        let Some(seen) = observation else { return Self::default() };
        Self {
            sent_bytes: seen.sent_bytes,
            acked_bytes: seen.acked_bytes,
            lost_bytes: seen.lost_bytes,
            lost_packets: seen.lost_packets,
            ce_packets: seen.ce_packets,
            packets,
            rtt: seen.rtt.map(|rtt| {
                [rtt.latest, rtt.smoothed, rtt.min].map(uncork_units::TimeDelta::as_nanos)
            }),
            pacing_rate: seen.control.pacing_rate.map(uncork_units::Rate::bits_per_sec),
        }
    }

    /// What `Server-Timing` says of the transport.
    pub(super) fn timing(&self) -> Option<String> {
        let milliseconds = |nanos| Duration::from_nanos(nanos).as_secs_f64() * 1e3;
        let [_, smoothed, min] = self.rtt?.map(milliseconds);
        let pacing = self.pacing_rate.map_or(String::new(), |rate| {
            format!(", pacing;desc=\"{:.2} Mbit/s\"", rate as f64 / 1e6)
        });
        Some(format!("rtt;dur={smoothed:.2}, min-rtt;dur={min:.2}{pacing}"))
    }
}
