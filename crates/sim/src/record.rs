//! The parts of a flow's record that its description gives.

use uncork_cc::ControllerSpec;
use uncork_flow::{FlowRecord, LabRecord};

use crate::spec::{FlowSpec, RunSpec, Workload};

impl<S: ControllerSpec> RunSpec<S> {
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

impl<S: ControllerSpec> FlowSpec<S> {
    /// Whether it has an end of its own to come to, which its completion is the time to.
    pub fn completes(&self) -> bool {
        matches!(self.workload, Workload::Transfer(_) | Workload::Client(_) | Workload::Command(_))
    }

    pub(crate) fn unplayed(&self, (seed, flow): (u64, u32), engine: &str) -> FlowRecord {
        FlowRecord {
            start_ns: self.start.as_nanos(),
            size_bytes: match self.workload {
                Workload::Transfer(bytes) => Some(bytes),
                Workload::Until(_)
                | Workload::Media(_)
                | Workload::Client(_)
                | Workload::Command(_) => None,
            },
            lab: Some(LabRecord::default()),
            ..FlowRecord::blank(engine, "", &self.cc.name().to_string(), (seed, flow))
        }
    }
}
