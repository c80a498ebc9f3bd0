//! The records of a run.

use serde::{Deserialize, Serialize};
use uncork_flow::{FlowRecord, RequestRecord, SeriesPoint};
use uncork_sim::RunResult;

use crate::engine::PlayedRun;
use crate::scenario::{Instance, Scenario};

/// The records of a run, with its cell and seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunOutcome {
    /// Index of the cell.
    pub cell: usize,
    /// Seed of the run.
    pub seed: u64,
    /// Its flows; their `group` is the class name.
    pub flows: Vec<FlowRecord>,
    /// Requests of requesting clients.
    pub requests: Vec<RequestRecord>,
    /// For each flow the first flow of its client, see [`Instance::client_of_flow`].
    pub clients: Vec<u32>,
    /// Data packets sent.
    pub packets: u64,
    /// Reasons to distrust the run.
    pub doubts: Vec<String>,
    /// Outcomes of commands, by flow.
    pub commands: Vec<CommandOutcome>,
}

/// The outcome of a command: a flow's server or client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandOutcome {
    /// The flow.
    pub flow: u32,
    /// Whether it is the server.
    pub is_server: bool,
    /// Its output.
    pub output: String,
    /// Its error.
    pub problem: Option<String>,
}

impl RunOutcome {
    /// Whether the QUIC stack gave up a connection. What the run delivered until then, or what the
    /// other flows gained by it, is not a result of a controller.
    pub(crate) fn is_dead(&self) -> bool {
        let is_quic = self.flows.first().is_some_and(|flow| flow.engine == "quic-sim");
        is_quic && !self.doubts.is_empty()
    }

    /// The requests carried by `flow` of this run.
    pub(crate) fn requests_of(&self, flow: &FlowRecord) -> impl Iterator<Item = &RequestRecord> {
        let first = self.requests.partition_point(|request| request.flow < flow.flow);
        let flow = flow.flow;
        self.requests[first..].iter().take_while(move |request| request.flow == flow)
    }
}

/// The records and the series of `instance`, from its results `played`.
pub(crate) fn outcome(
    scenario: &Scenario,
    (cell, seed): (usize, u64),
    instance: &Instance,
    PlayedRun { result, doubts, commands }: PlayedRun,
) -> (RunOutcome, Vec<SeriesPoint>) {
    let RunResult { mut flows, requests, series, packets } = result;
    let classes = &scenario.cells[cell].classes;
    for (flow, class) in flows.iter_mut().zip(&instance.class_of_flow) {
        let class = classes.get(*class as usize);
        flow.group = class.map_or_else(Default::default, |class| class.name.as_str().into());
    }
    let clients = instance.client_of_flow.clone();
    (RunOutcome { cell, seed, flows, requests, clients, packets, doubts, commands }, series)
}
