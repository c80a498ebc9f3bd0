//! What a comparison found. The JSON form of [`CompareDocument`] is a contract: fields may be added
//! within one schema number, never renamed, moved or given another meaning.
//! Floats are finite: JSON knows no others.

use serde::{Deserialize, Serialize};
use uncork_flow::Quantiles;

/// The outcome of running the same workload over the same path with several controllers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CompareDocument {
    /// Always [`CompareDocument::SCHEMA`].
    pub schema: String,
    /// Version of uncork that wrote it.
    pub version: String,
    /// The command that repeats it.
    pub command: String,
    /// The path that was crossed.
    pub path: PathFigures,
    /// What each flow carried.
    pub workload: Workload,
    /// How many seeded runs stand behind each result.
    pub seeds: u64,
    /// One column of the comparison each, in the order asked for.
    pub results: Vec<ColumnResult>,
    /// What the figures say, in one or a few sentences, one per line.
    pub verdict: String,
    /// What the run cost: the only part that differs between equal runs.
    pub engine: EngineFigures,
}

impl CompareDocument {
    /// Name and major version of the JSON form.
    pub const SCHEMA: &str = "uncork.compare/1";
}

/// A path with one bottleneck.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathFigures {
    /// Rate of the bottleneck in bits per second, headers included.
    pub rate_bps: u64,
    /// Round-trip time of an empty path in milliseconds.
    pub rtt_ms: f64,
    /// Probability that a packet is lost at random, 0 to 1.
    pub loss: f64,
    /// Where random loss strikes.
    pub loss_position: LossPosition,
    /// Size of the bottleneck's queue in bytes.
    pub buffer_bytes: u64,
    /// The same in full-sized packets.
    pub buffer_packets: u64,
    /// The same in bandwidth-delay products of the path.
    pub buffer_bdp: f64,
    /// Payload of a full-sized packet in bytes.
    pub mss_bytes: u32,
    /// A full-sized packet on the wire in bytes.
    pub packet_bytes: u32,
}

/// Where random loss strikes, relative to the bottleneck.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LossPosition {
    /// Before the queue: a lost packet costs no capacity.
    Before,
    /// After the link: a lost packet has used the bottleneck.
    After,
}

/// What each flow carried.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Workload {
    /// One transfer.
    Size {
        /// Its payload in bytes.
        size_bytes: u64,
    },
    /// As much as would go.
    Duration {
        /// For this many seconds.
        duration_s: f64,
    },
}

/// One column of the comparison: a controller, or a mix of them sharing the path. Figures are
/// medians over the seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ColumnResult {
    /// The column's label: a controller (`bbr3`) or a mix (`bbr3+cubic`).
    pub cc: String,
    /// Flows that shared the path in each run.
    pub flows: u32,
    /// Time to the last byte, over every transfer that finished; `None` where there is none.
    pub completion_s: Option<Spread>,
    /// Transfers that did not finish, over all seeds.
    pub unfinished: u64,
    /// Payload delivered by all flows together, in bits per second.
    pub goodput_bps: u64,
    /// Payload delivered, with its headers, over what the bottleneck could carry in that time: 0 to 1.
    pub utilisation: f64,
    /// Round-trip times as the senders measured them, in milliseconds; `None` where none was.
    pub rtt_ms: Option<Quantiles>,
    /// Time that packets waited in the bottleneck's queue, in milliseconds; `None` where none came
    /// through it.
    pub queue_ms: Option<QueueDelay>,
    /// Payload bytes sent again over payload bytes sent.
    pub retransmit_fraction: f64,
    /// Retransmission timeouts of all flows together.
    pub timeouts: u64,
    /// Jain's fairness index of the flows' goodputs, 1/flows to 1; `None` for a single flow.
    pub jain: Option<f64>,
    /// Each flow by itself.
    pub per_flow: Vec<FlowResult>,
}

/// Where the middle four fifths of a distribution lie.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// 10th percentile.
    pub p10: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
}

/// The middle and the tail of a queue's delay, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueueDelay {
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
}

/// One flow of a column; medians over the seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowResult {
    /// Index of the flow in its run.
    pub flow: u32,
    /// Its controller.
    pub cc: String,
    /// Payload delivered, in bits per second.
    pub goodput_bps: u64,
    /// Its part of the column's goodput, 0 to 1.
    pub share: f64,
    /// Time to the last byte in seconds; `None` for flows of a duration and unfinished transfers.
    pub completion_s: Option<f64>,
}

/// What a comparison cost to run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EngineFigures {
    /// Packets simulated, over all columns and seeds.
    pub packets: u64,
    /// Wall-clock seconds.
    pub wall_s: f64,
    /// Their quotient.
    pub packets_per_s: u64,
}
