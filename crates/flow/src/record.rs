//! One row per transfer.

use serde::{Deserialize, Serialize};

use crate::service::{Choice, Service};

/// One transfer: a core that every engine has, and parts that some have. Times are in nanoseconds since the start of the
/// run, byte counts are payload unless they say otherwise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowRecord {
    /// The engine that carried it: `sim`.
    pub engine: String,
    /// Which comparison column (a controller or a mix) or class of a scenario it belongs to.
    pub group: String,
    /// The controller, such as `bbr3`.
    pub cc: String,
    /// Seed of the run.
    pub seed: u64,
    /// Index of the flow in its run.
    pub flow: u32,
    /// When it started to connect.
    pub start_ns: u64,
    /// From the start to the last byte at the receiver; `None` for flows of a duration and for
    /// transfers that did not finish.
    pub completion_ns: Option<u64>,
    /// From the start to the first byte at the receiver.
    pub first_byte_ns: Option<u64>,
    /// How long data was in flight or waiting to be sent: with `bytes_acked` the honest throughput.
    pub busy_ns: u64,
    /// Bytes asked for; `None` for flows of a duration.
    pub size_bytes: Option<u64>,
    /// Distinct payload bytes that reached the receiver.
    pub bytes_delivered: u64,
    /// Payload bytes acknowledged.
    pub bytes_acked: u64,
    /// Payload bytes sent, retransmissions included.
    pub bytes_sent: u64,
    /// Payload bytes sent again.
    pub bytes_retransmitted: u64,
    /// Packets sent, retransmissions included.
    pub packets_sent: u64,
    /// Packets declared lost.
    pub packets_lost: u64,
    /// Packets that arrived with a mark of congestion (ECN).
    pub packets_marked: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Round-trip times as the sender measured them, in milliseconds.
    pub rtt_ms: Option<Quantiles>,
    /// The part of the laboratory's engines. In JSON its fields are among those of the record.
    #[serde(flatten)]
    pub lab: Option<LabRecord>,
    /// The experience of a listener or viewer.
    pub playback: Option<Playback>,
    /// The part of servers. JSON without it has no such field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<Service>,
    /// The policy's choice of the controller, if there is a policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub choice: Option<Choice>,
}

impl FlowRecord {
    /// The record of flow `flow` of a run with the seed `seed` before anything is known of it but whose it
    /// is: nothing happened, at the beginning of the run.
    pub fn blank(engine: &str, group: &str, cc: &str, (seed, flow): (u64, u32)) -> Self {
        Self {
            engine: engine.to_owned(),
            group: group.to_owned(),
            cc: cc.to_owned(),
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

    /// The part of the laboratory's engines; nothing happened if there is none.
    pub fn lab(&self) -> LabRecord {
        self.lab.unwrap_or_default()
    }

    /// Bytes delivered after the run's warm-up.
    pub fn delivered_after_warmup(&self) -> u64 {
        self.bytes_delivered - self.lab().bytes_delivered_early
    }
}

/// The part of a record that only engines of the laboratory have: they control path and run.
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
    /// Acknowledgements dropped on the way back.
    pub acks_dropped: u64,
    /// Time that each packet spent in queues, in milliseconds.
    pub queue_ms: Option<Quantiles>,
}

impl LabRecord {
    /// Packets dropped by queues and policers.
    pub fn dropped_by_links(&self) -> u64 {
        self.packets_dropped_queue + self.packets_dropped_policer
    }
}

/// How a playback went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Playback {
    /// Playback latency: from the click to the first sound or picture; `None` if there was none.
    pub startup_ns: Option<u64>,
    /// How much was played.
    pub played_ns: u64,
    /// How long it stood still after the first sound.
    pub stalled_ns: u64,
    /// How often it did.
    pub stutters: u64,
    /// Songs or films of which something was played.
    pub items: u64,
    /// Mean bitrate of what was fetched, where a player chose it.
    pub bitrate_bps: Option<u64>,
    /// How often that changed.
    pub switches: u64,
}

/// A request on a connection, and what came of it.
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
    /// How much of it arrived.
    pub bytes_delivered: u64,
}

/// An object that was read from a table: a request, or the transfer of a flow, which is the answer to
/// one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectRow {
    /// Which comparison column or class of a scenario its flow belongs to.
    pub group: String,
    /// The flow's controller.
    pub cc: String,
    /// Seed of the run.
    pub seed: u64,
    /// Its outcome.
    pub object: RequestRecord,
}

/// Where a distribution lies.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quantiles {
    /// Smallest value.
    pub min: f64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
}
