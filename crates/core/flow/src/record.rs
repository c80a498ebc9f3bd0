//! One row per transfer.

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

use crate::service::{Choice, Service};

/// One transfer: a core set by every engine, and optional parts. Times are in nanoseconds since the
/// start of the run; byte counts are payload unless stated otherwise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowRecord {
    /// The engine that carried it: `sim`.
    pub engine: SmolStr,
    /// Its comparison column (a controller or a mix) or scenario class.
    pub group: SmolStr,
    /// The controller, such as `bbr3`.
    pub cc: SmolStr,
    /// Seed of the run.
    pub seed: u64,
    /// Index of the flow in its run.
    pub flow: u32,
    /// When the connection attempt started.
    pub start_ns: u64,
    /// From the start to the last byte at the receiver; `None` for timed flows and for transfers
    /// that did not finish.
    pub completion_ns: Option<u64>,
    /// From the start to the first byte at the receiver.
    pub first_byte_ns: Option<u64>,
    /// Time with data in flight or waiting to be sent; with `bytes_acked` it gives the throughput
    /// excluding idle time.
    pub busy_ns: u64,
    /// Bytes requested; `None` for timed flows.
    pub size_bytes: Option<u64>,
    /// Payload bytes received, without duplicates.
    pub bytes_delivered: u64,
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
    /// Packets received with CE (ECN).
    pub packets_marked: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// RTTs measured by the sender, in milliseconds.
    pub rtt_ms: Option<Quantiles>,
    /// Set by lab engines. In JSON its fields are inlined in the record.
    #[serde(flatten)]
    pub lab: Option<LabRecord>,
    /// The experience of a listener or viewer.
    pub playback: Option<Playback>,
    /// Set by servers. Omitted in JSON if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<Service>,
    /// The policy's choice of the controller, if there is a policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub choice: Option<Choice>,
}

impl FlowRecord {
    /// The record of flow `flow` of a run with seed `seed` in its initial state: all counters are
    /// zero, at the beginning of the run.
    pub fn blank(engine: &str, group: &str, cc: &str, (seed, flow): (u64, u32)) -> Self {
        Self {
            engine: engine.into(),
            group: group.into(),
            cc: cc.into(),
            seed,
            flow,
            start_ns: 0,
            completion_ns: None,
            first_byte_ns: None,
            busy_ns: 0,
            size_bytes: None,
            bytes_delivered: 0,
            bytes_acked: 0,
            bytes_sent: 0,
            bytes_retransmitted: 0,
            packets_sent: 0,
            packets_lost: 0,
            packets_marked: 0,
            timeouts: 0,
            rtt_ms: None,
            lab: None,
            playback: None,
            service: None,
            choice: None,
        }
    }

    /// The part set by lab engines; all zero if absent.
    pub fn lab(&self) -> LabRecord {
        self.lab.unwrap_or_default()
    }

    /// Bytes delivered after the run's warm-up.
    pub fn delivered_after_warmup(&self) -> u64 {
        self.bytes_delivered - self.lab().bytes_delivered_early
    }
}

/// The part of a record that only lab engines set, because they control path and run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LabRecord {
    /// Bytes delivered before the end of the run's warm-up.
    pub bytes_delivered_early: u64,
    /// Packets dropped by queues.
    pub packets_dropped_queue: u64,
    /// Packets dropped by policers.
    pub packets_dropped_policer: u64,
    /// Packets lost at random.
    pub packets_dropped_random: u64,
    /// ACKs dropped on the return path.
    pub acks_dropped: u64,
    /// Queueing delay of the packets, in milliseconds.
    pub queue_ms: Option<Quantiles>,
}

impl LabRecord {
    /// Packets dropped by queues and policers.
    pub fn dropped_by_links(&self) -> u64 {
        self.packets_dropped_queue + self.packets_dropped_policer
    }
}

/// The outcome of a playback.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Playback {
    /// Playback latency: from the click to the first sound or picture; `None` if there was none.
    pub startup_ns: Option<u64>,
    /// Total playing time.
    pub played_ns: u64,
    /// Total stalled time after the first sound.
    pub stalled_ns: u64,
    /// Number of stalls.
    pub stutters: u64,
    /// Songs or videos played at least in part.
    pub items: u64,
    /// Mean bitrate fetched, if a player chose it.
    pub bitrate_bps: Option<u64>,
    /// Number of bitrate changes.
    pub switches: u64,
}

/// A request on a connection and its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestRecord {
    /// Index of the flow in its run.
    pub flow: u32,
    /// When the client wanted it.
    pub start_ns: u64,
    /// From then to the first byte of the answer.
    pub first_byte_ns: Option<u64>,
    /// From then to its last byte.
    pub completion_ns: Option<u64>,
    /// Size of the answer.
    pub size_bytes: u64,
    /// Bytes of it that arrived.
    pub bytes_delivered: u64,
}

/// An object read from a table: a request, or a flow's transfer, which is the answer to one
/// request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectRow {
    /// The comparison column or scenario class of its flow.
    pub group: SmolStr,
    /// The flow's controller.
    pub cc: SmolStr,
    /// Seed of the run.
    pub seed: u64,
    /// Its outcome.
    pub object: RequestRecord,
}

/// Quantiles of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quantiles {
    /// Smallest value.
    pub min: f64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
}
