//! What to simulate.

use uncork_cc::{CcSpec, ResumeHint};
use uncork_path::PathSpec;
use uncork_units::{Time, TimeDelta};

/// One run: some flows over one path.
#[derive(Clone, Debug)]
pub struct RunSpec {
    /// The path all flows share. Its RTT is that of flows that name none.
    pub path: PathSpec,
    /// The flows.
    pub flows: Vec<FlowSpec>,
    /// Seed of everything random.
    pub seed: u64,
    /// When to stop, finished or not.
    pub end: Time,
    /// How often to write down the inside of each flow; `None` writes no series.
    pub sample_every: Option<TimeDelta>,
}

/// One flow from a server to a client.
#[derive(Clone, Copy, Debug)]
pub struct FlowSpec {
    /// The server's controller.
    pub cc: CcSpec,
    /// When the client starts to connect.
    pub start: Time,
    /// Round-trip propagation time; `None` takes the path's.
    pub rtt: Option<TimeDelta>,
    /// What is sent.
    pub workload: Workload,
    /// The client's receive window in bytes.
    pub receive_window: u64,
    /// What the server remembers of the path from an earlier connection.
    pub resume: Option<ResumeHint>,
}

/// What a flow sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// This many bytes, then the flow is done.
    Transfer(u64),
    /// As much as goes until this time.
    Until(Time),
}

impl FlowSpec {
    /// A receive window that never binds.
    pub const WIDE_OPEN: u64 = 1 << 40;

    /// A flow that starts at once over the path's own RTT, never held back by its receiver.
    pub const fn new(cc: CcSpec, workload: Workload) -> Self {
        let receive_window = Self::WIDE_OPEN;
        Self { cc, start: Time::ZERO, rtt: None, workload, receive_window, resume: None }
    }
}
