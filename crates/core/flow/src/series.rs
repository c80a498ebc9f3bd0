//! One row per flow and sampling instant.

use smol_str::SmolStr;

use crate::labelled::Label;
use crate::record::FlowRecord;

/// The state of a flow at one instant. Counters are since the start of the flow. `S` is the type of
/// the state's name: static from a controller, or owned if read from a file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeriesPoint<S = &'static str> {
    /// Time since the start of the run, in nanoseconds.
    pub time_ns: u64,
    /// Index of the flow in its run.
    pub flow: u32,
    /// Name of the controller state in the specification.
    pub state: S,
    /// Congestion window in bytes.
    pub cwnd_bytes: u64,
    /// Bytes in flight.
    pub inflight_bytes: u64,
    /// Pacing rate in bits per second; `None` if the sender is ACK-clocked.
    pub pacing_bps: Option<u64>,
    /// BBR.max_bw in bits per second.
    pub max_bw_bps: Option<u64>,
    /// The controller's min_rtt in nanoseconds.
    pub min_rtt_ns: Option<u64>,
    /// Latest RTT sample in nanoseconds.
    pub rtt_ns: Option<u64>,
    /// Bytes of all flows in the bottleneck queue.
    pub queue_bytes: u64,
    /// Payload bytes delivered so far.
    pub delivered_bytes: u64,
    /// Payload bytes declared lost so far.
    pub lost_bytes: u64,
}

/// The points of one run with its identification, for writing.
#[derive(Clone, Debug, PartialEq)]
pub struct RunSeries<'a> {
    /// Its labels, see [`crate::TableHead`].
    pub labels: &'a [Label],
    /// Seed of the run.
    pub seed: u64,
    /// The flows of the run by index, for the group and controller of the points.
    pub flows: &'a [FlowRecord],
    /// The points.
    pub points: &'a [SeriesPoint],
}

/// A point read from a file, with its run.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesRow {
    /// The comparison column or scenario class of the flow.
    pub group: SmolStr,
    /// The flow's controller.
    pub cc: SmolStr,
    /// Seed of the run.
    pub seed: u64,
    /// The point.
    pub point: SeriesPoint<String>,
}
