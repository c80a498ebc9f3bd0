//! One row per flow and sampling instant.

/// The inside of a flow at one instant. Counters are since the start of the flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeriesPoint {
    /// Time since the start of the run, in nanoseconds.
    pub time_ns: u64,
    /// Index of the flow in its run.
    pub flow: u32,
    /// Controller state by the specification's name.
    pub state: &'static str,
    /// Congestion window in bytes.
    pub cwnd_bytes: u64,
    /// Bytes in flight.
    pub inflight_bytes: u64,
    /// Pacing rate in bits per second; `None` when ACKs clock the sender.
    pub pacing_bps: Option<u64>,
    /// BBR.max_bw in bits per second.
    pub max_bw_bps: Option<u64>,
    /// The controller's min_rtt in nanoseconds.
    pub min_rtt_ns: Option<u64>,
    /// Newest RTT sample in nanoseconds.
    pub rtt_ns: Option<u64>,
    /// Bytes in the bottleneck's queue, of all flows.
    pub queue_bytes: u64,
    /// Payload bytes delivered so far.
    pub delivered_bytes: u64,
    /// Payload bytes declared lost so far.
    pub lost_bytes: u64,
}
