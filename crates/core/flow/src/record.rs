//! One row per transfer.

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

use crate::service::{Choice, Service};
use crate::start::StartRecord;

/// An object of at least this many bytes is large: it is compared by its throughput, a smaller one by its completion time.
/// Smaller ones are mostly slow start.
pub const LARGE_BYTES: u64 = 3_000_000;

/// One transfer: a core set by every engine, and optional parts. Times are in nanoseconds since the
/// start of the run; byte counts are payload unless stated otherwise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FlowRecord {
    /// The engine that carried it: `sim`, `quic-sim`, `netns`, `bpf`, `serve`, `watch` (also of
    /// `steer record` and `host prove`), `play`.
    pub engine: SmolStr,
    /// Class of traffic: that of a scenario, `main` of `uncork compare`, the service port of
    /// `watch`.
    pub group: SmolStr,
    /// The controller, such as `bbr3`.
    pub cc: SmolStr,
    /// Seed of the run.
    pub seed: u64,
    /// Index of the flow in its run.
    pub flow: u32,
    /// When the connect began, from the start of the run.
    pub start_ns: u64,
    /// From `start_ns` to the last byte at the client, of a `command` to its end with status 0;
    /// null if it did not finish, or had no end.
    pub completion_ns: Option<u64>,
    /// From `start_ns` to the first byte at the client.
    pub first_byte_ns: Option<u64>,
    /// Time with data in flight or waiting to be sent: with `bytes_acked` the throughput without
    /// idle time.
    pub busy_ns: u64,
    /// Requested size; null for flows of a duration.
    pub size_bytes: Option<u64>,
    /// Payload received by the client, each byte counted once; of a `command`, by either side.
    pub bytes_delivered: u64,
    /// Payload acknowledged.
    pub bytes_acked: u64,
    /// Payload sent, retransmissions included; of `quic-sim` with frames and headers of QUIC.
    pub bytes_sent: u64,
    /// Payload retransmitted.
    pub bytes_retransmitted: u64,
    /// Data packets sent, retransmissions included; of `quic-sim` all packets of the server.
    pub packets_sent: u64,
    /// Packets that the sender declared lost.
    pub packets_lost: u64,
    /// Packets that arrived with CE, a mark of congestion (ECN).
    pub packets_marked: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Round-trip times as the sender measured them, one per acknowledgement; of `netns` and `bpf`
    /// the smoothed one, sampled over time.
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
    pub choice: Option<Box<Choice>>,
    /// The start of the connection: in the records of its first transfer and of the whole connection. Omitted in JSON if
    /// nothing is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Box<StartRecord>>,
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
            start: None,
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LabRecord {
    /// Payload received by the client during the warm-up.
    pub bytes_delivered_early: u64,
    /// Of the packets sent, dropped by queues; of `netns` and `bpf`, of all packets to the client.
    pub packets_dropped_queue: u64,
    /// Of the packets sent, dropped by policers.
    pub packets_dropped_policer: u64,
    /// Of the packets sent, lost at random.
    pub packets_dropped_random: u64,
    /// Acknowledgements dropped on the return path.
    pub acks_dropped: u64,
    /// Time that each packet of the flow spent in queues.
    pub queue_ms: Option<Quantiles>,
    /// Time that each packet of the flow spent in queues. 99th percentile.
    pub queue_p99_ms: Option<f64>,
}

impl LabRecord {
    /// Packets dropped by queues and policers.
    pub fn dropped_by_links(&self) -> u64 {
        self.packets_dropped_queue + self.packets_dropped_policer
    }
}

/// The outcome of a playback.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Playback {
    /// From the click to the first sound or picture; null if there was none.
    pub startup_ns: Option<u64>,
    /// Played time.
    pub played_ns: u64,
    /// Time without sound or motion after the first sound.
    pub stalled_ns: u64,
    /// Number of such stalls.
    pub stutters: u64,
    /// Songs or films that were played at least in part.
    pub items: u64,
    /// Mean bitrate of the fetched media, if a player chose it.
    pub bitrate_bps: Option<u64>,
    /// Number of changes of the bitrate.
    pub switches: u64,
}

/// A request on a connection and its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RequestRecord {
    /// The flow that carried it.
    pub flow: u32,
    /// Time of the client's request, from the start of the run.
    pub start_ns: u64,
    /// From `start_ns` to its first byte at the client.
    pub first_byte_ns: Option<u64>,
    /// From `start_ns` to its last byte; null if it did not arrive before the run ended.
    pub completion_ns: Option<u64>,
    /// Requested size.
    pub size_bytes: u64,
    /// Received bytes.
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Quantiles {
    /// Minimum.
    pub min: f64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
}
