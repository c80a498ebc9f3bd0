//! Conversion of a transport's counters to a record.

use serde::{Deserialize, Serialize};
use uncork_units::{Rate, TimeDelta};

use crate::ecn::{EcnEvidence, EcnUse};
use crate::histogram::Distribution;
use crate::record::{FlowRecord, Quantiles};
use crate::serialized::{maybe_bits_per_sec, maybe_nanos, nanos};
use crate::service::Service;
use crate::start::StartRecord;

/// Counters of a connection since its start, and its latest measurements. All transports, kernel
/// TCP and QUIC, use this to create a flow record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct TransportFigures {
    /// Payload bytes acknowledged.
    pub bytes_acked: u64,
    /// Payload bytes sent, retransmissions included.
    pub bytes_sent: u64,
    /// Payload bytes retransmitted.
    pub bytes_retransmitted: u64,
    /// Packets sent, retransmissions included.
    pub packets_sent: u64,
    /// Packets declared lost.
    pub packets_lost: u64,
    /// Packets acknowledged with CE (ECN).
    pub packets_marked: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Time with data in flight or waiting to be sent.
    #[cfg_attr(feature = "schemars", schemars(with = "u64"))]
    #[serde(rename = "busy_ns", with = "nanos")]
    pub busy: TimeDelta,
    /// Part of `busy_ns` in which the receive window limited the sender.
    #[cfg_attr(feature = "schemars", schemars(with = "Option<u64>"))]
    #[serde(rename = "rwnd_limited_ns", with = "maybe_nanos")]
    pub rwnd_limited: Option<TimeDelta>,
    /// Part of `busy_ns` in which the send buffer limited it.
    #[cfg_attr(feature = "schemars", schemars(with = "Option<u64>"))]
    #[serde(rename = "sndbuf_limited_ns", with = "maybe_nanos")]
    pub sndbuf_limited: Option<TimeDelta>,
    /// Part of `busy_ns` in which the application limited it; null of kernel TCP, which does not report it.
    #[cfg_attr(feature = "schemars", schemars(with = "Option<u64>"))]
    #[serde(rename = "app_limited_ns", with = "maybe_nanos")]
    pub app_limited: Option<TimeDelta>,
    /// The smoothed round-trip time.
    #[cfg_attr(feature = "schemars", schemars(with = "Option<u64>"))]
    #[serde(rename = "rtt_ns", with = "maybe_nanos")]
    pub rtt: Option<TimeDelta>,
    /// The smallest round-trip time.
    #[cfg_attr(feature = "schemars", schemars(with = "Option<u64>"))]
    #[serde(rename = "min_rtt_ns", with = "maybe_nanos")]
    pub min_rtt: Option<TimeDelta>,
    /// The latest delivery rate sample.
    #[cfg_attr(feature = "schemars", schemars(with = "Option<u64>"))]
    #[serde(rename = "delivery_rate_bps", with = "maybe_bits_per_sec")]
    pub delivery_rate: Option<Rate>,
    /// How the connection uses ECN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecn: Option<EcnUse>,
    /// What packets with ECT(1) met.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecn_evidence: Option<EcnEvidence>,
    /// How the start of the connection went. The kernel does not report it, so tapes of its reports have none.
    #[serde(skip)]
    pub start: Option<StartRecord>,
}

impl TransportFigures {
    /// The differences since `before`, with the latest measurements.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let count = |of: fn(&Self) -> u64| of(self).saturating_sub(of(before));
        let limited = |of: fn(&Self) -> Option<TimeDelta>| Some(of(self)? - of(before)?);
        Self {
            bytes_acked: count(|it| it.bytes_acked),
            bytes_sent: count(|it| it.bytes_sent),
            bytes_retransmitted: count(|it| it.bytes_retransmitted),
            packets_sent: count(|it| it.packets_sent),
            packets_lost: count(|it| it.packets_lost),
            packets_marked: count(|it| it.packets_marked),
            timeouts: count(|it| it.timeouts),
            busy: self.busy - before.busy,
            rwnd_limited: limited(|it| it.rwnd_limited),
            sndbuf_limited: limited(|it| it.sndbuf_limited),
            app_limited: limited(|it| it.app_limited),
            ..*self
        }
    }

    /// Adds the counters of another connection. Measurements are unchanged.
    pub fn add(&mut self, other: &Self) {
        self.bytes_acked = self.bytes_acked.saturating_add(other.bytes_acked);
        self.bytes_sent = self.bytes_sent.saturating_add(other.bytes_sent);
        self.bytes_retransmitted =
            self.bytes_retransmitted.saturating_add(other.bytes_retransmitted);
        self.packets_sent = self.packets_sent.saturating_add(other.packets_sent);
        self.packets_lost = self.packets_lost.saturating_add(other.packets_lost);
        self.packets_marked = self.packets_marked.saturating_add(other.packets_marked);
        self.timeouts = self.timeouts.saturating_add(other.timeouts);
        self.busy += other.busy;
    }

    /// `record` with these figures; service fields only if it has that part.
    #[must_use]
    pub fn fill(&self, record: FlowRecord) -> FlowRecord {
        let nanos = |time: Option<TimeDelta>| time.map(TimeDelta::as_nanos);
        let service = record.service.map(|service| Service {
            min_rtt_ns: nanos(self.min_rtt),
            delivery_rate_bps: self.delivery_rate.map(Rate::bits_per_sec),
            ecn: self.ecn,
            ecn_evidence: self.ecn_evidence.map(Box::new),
            rwnd_limited_ns: nanos(self.rwnd_limited),
            sndbuf_limited_ns: nanos(self.sndbuf_limited),
            app_limited_ns: nanos(self.app_limited),
            ..service
        });
        FlowRecord {
            busy_ns: self.busy.as_nanos(),
            bytes_acked: self.bytes_acked,
            bytes_sent: self.bytes_sent,
            bytes_retransmitted: self.bytes_retransmitted,
            packets_sent: self.packets_sent,
            packets_lost: self.packets_lost,
            packets_marked: self.packets_marked,
            timeouts: self.timeouts,
            service,
            start: self.start.map(Box::new),
            ..record
        }
    }
}

/// The RTT quantiles in milliseconds. Includes the transport's own minimum, which covers more RTTs
/// than were sampled.
pub fn rtt_quantiles(rtts: &Distribution, min: Option<TimeDelta>) -> Option<Quantiles> {
    let mut quantiles = rtts.quantiles()?;
    if let Some(min) = min {
        quantiles.min = quantiles.min.min(min.as_nanos() as f64 / 1e6);
    }
    Some(quantiles)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn since_gives_differences_and_the_newest_measurements() {
        let ms = TimeDelta::from_millis;
        let before = TransportFigures {
            bytes_acked: 1000,
            packets_lost: 3,
            busy: ms(10),
            rwnd_limited: Some(ms(1)),
            rtt: Some(ms(20)),
            ..TransportFigures::default()
        };
        let now = TransportFigures {
            bytes_acked: 5000,
            packets_lost: 3,
            busy: ms(40),
            rwnd_limited: Some(ms(6)),
            app_limited: Some(ms(2)),
            rtt: Some(ms(25)),
            ..TransportFigures::default()
        };
        let between = now.since(&before);
        assert_eq!((between.bytes_acked, between.packets_lost), (4000, 0));
        assert_eq!((between.busy, between.rwnd_limited), (ms(30), Some(ms(5))));
        // Unknown at either end means unknown in between.
        assert_eq!((between.app_limited, between.rtt), (None, Some(ms(25))));
    }

    #[test]
    fn fill_writes_counters_and_leaves_the_rest() {
        let figures =
            TransportFigures { bytes_acked: 7, timeouts: 2, ..TransportFigures::default() };
        let record = FlowRecord { bytes_delivered: 5, ..FlowRecord::blank("e", "g", "cc", (1, 2)) };
        let filled = figures.fill(record);
        assert_eq!((filled.bytes_acked, filled.timeouts, filled.bytes_delivered), (7, 2, 5));
        assert_eq!(filled.service, None);
    }
}
