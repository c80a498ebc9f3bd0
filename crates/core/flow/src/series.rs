//! One row per flow and sampling instant.

use smol_str::SmolStr;

use crate::labelled::Label;
use crate::record::FlowRecord;

/// The state of a flow at one instant. Counters are since the start of the flow. `S` is the type of
/// the state's name: static from a controller, or owned if read from a file.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SeriesPoint<S = &'static str> {
    /// From the start of the run.
    pub time_ns: u64,
    /// Index of the flow in its run.
    pub flow: u32,
    /// State of the controller, by its specification's name: `ProbeBW_UP`, `Recovery`.
    pub state: S,
    /// Congestion window.
    pub cwnd_bytes: u64,
    /// Sent, and neither acknowledged nor declared lost.
    pub inflight_bytes: u64,
    /// Pacing rate; null if acknowledgements clock the sender.
    pub pacing_bps: Option<u64>,
    /// BBR's estimate of the bandwidth.
    pub max_bw_bps: Option<u64>,
    /// The controller's estimate of the minimum round-trip time.
    pub min_rtt_ns: Option<u64>,
    /// Latest sample of the round-trip time.
    pub rtt_ns: Option<u64>,
    /// In the queue of the path's own link, of all flows.
    pub queue_bytes: u64,
    /// Payload that arrived since the flow's start.
    pub delivered_bytes: u64,
    /// Payload declared lost since then.
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
