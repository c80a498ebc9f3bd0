//! The parts of a flow's record that come from its specification.

use uncork_cc::ControllerSpec;
use uncork_flow::{FlowRecord, LabRecord};

use crate::spec::{FlowSpec, RunSpec, Workload};

impl<S: ControllerSpec> RunSpec<S> {
    /// The record of the flow with index `flow` before the run. The `engine` adds its measurements.
    ///
    /// # Panics
    ///
    /// If `flow` does not exist.
    pub fn unplayed(&self, flow: u32, engine: &str) -> FlowRecord {
        self.flows[flow as usize].unplayed((self.seed, flow), engine)
    }
}

impl<S: ControllerSpec> FlowSpec<S> {
    /// Whether the workload has an end of its own. The time of that end is its completion.
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
