//! What a flow leaves, as far as its description says it.

use uncork_flow::FlowRecord;

use crate::spec::{FlowSpec, RunSpec, Workload};

impl RunSpec {
    /// The record of the flow of index `flow` before anything has happened: what `engine` measures goes
    /// on top of it.
    ///
    /// # Panics
    ///
    /// If there is no such flow.
    pub fn unplayed(&self, flow: u32, engine: &str) -> FlowRecord {
        self.flows[flow as usize].unplayed((self.seed, flow), engine)
    }
}

impl FlowSpec {
    /// Whether it has an end of its own to come to, which its completion is the time to.
    pub fn completes(&self) -> bool {
        matches!(self.workload, Workload::Transfer(_) | Workload::Client(_) | Workload::Command(_))
    }

    pub(crate) fn unplayed(&self, (seed, flow): (u64, u32), engine: &str) -> FlowRecord {
        FlowRecord {
            engine: engine.into(),
            group: String::new(),
            cc: self.cc.to_string(),
            seed,
            flow,
            start_ns: self.start.as_nanos(),
            completion_ns: None,
            first_byte_ns: None,
            busy_ns: 0,
            size_bytes: match self.workload {
                Workload::Transfer(bytes) => Some(bytes),
                Workload::Until(_)
                | Workload::Media(_)
                | Workload::Client(_)
                | Workload::Command(_) => None,
            },
            bytes_delivered: 0,
            bytes_delivered_early: 0,
            bytes_acked: 0,
            bytes_sent: 0,
            bytes_retransmitted: 0,
            packets_sent: 0,
            packets_lost: 0,
            packets_dropped_queue: 0,
            packets_dropped_policer: 0,
            packets_dropped_random: 0,
            packets_marked: 0,
            acks_dropped: 0,
            timeouts: 0,
            rtt_ms: None,
            queue_ms: None,
            playback: None,
            service: None,
            choice: None,
        }
    }
}
