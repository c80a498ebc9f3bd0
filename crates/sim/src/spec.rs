//! Descriptions of runs.

use uncork_apps::{CbrSpec, Client, ClientSpec};
use uncork_cc::{CcSpec, ControllerSpec, ResumeHint};
use uncork_path::{BackSpec, Body, Ecn, FlowPath, LinkSpec, Network, NetworkSpec, PathSpec};
use uncork_units::{Rng, Time, TimeDelta};

use crate::segments::{HEADER_BYTES, PACKET_BYTES};

/// Stream of the seed that clients draw from, apart from each other for each flow.
const CLIENT_STREAM: u64 = 6 << 32;

/// One run: some flows over some paths.
#[derive(Clone, Debug)]
pub struct RunSpec<S: ControllerSpec = CcSpec> {
    /// Links that several paths cross on the way to their own.
    pub links: Vec<LinkSpec>,
    /// The paths. All flows of a path share its links.
    pub paths: Vec<PathSpec>,
    /// The clients that make requests.
    pub clients: Vec<ClientSpec>,
    /// Programs that real hosts run.
    pub commands: Vec<CommandSpec>,
    /// The flows.
    pub flows: Vec<FlowSpec<S>>,
    /// Seed of everything random.
    pub seed: u64,
    /// Up to when what flows deliver is counted apart, because they are still finding their rate.
    pub warmup: Time,
    /// When to stop, finished or not.
    pub end: Time,
    /// How often to write down the inside of each flow; `None` writes no series.
    pub sample_every: Option<TimeDelta>,
}

/// One flow from a server to a client.
#[derive(Clone, Copy, Debug)]
pub struct FlowSpec<S: ControllerSpec = CcSpec> {
    /// The server's controller.
    pub cc: S,
    /// Index of its path in [`RunSpec::paths`].
    pub path: usize,
    /// The client's host, for queues that share a link out among hosts; `None` is one of its own.
    pub host: Option<u32>,
    /// The ECN field of the flow's data. The server reacts to marks if this is ECN-capable. With ECT(0), SYN/ACKs and
    /// retransmissions are Not-ECT (RFC 3168 §6.1.1, §6.1.5); with ECT(1) they are ECT(1). The client's packets are
    /// Not-ECT (§6.1.4).
    pub ecn: Ecn,
    /// When the client starts to connect.
    pub start: Time,
    /// Round-trip propagation time; `None` takes the path's.
    pub rtt: Option<TimeDelta>,
    /// What it carries.
    pub workload: Workload,
    /// The client's receive window in bytes.
    pub receive_window: u64,
    /// The path as an earlier connection left it, for careful resume.
    pub resume: Option<ResumeHint>,
}

/// What a flow carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// This many bytes, then the flow is done.
    Transfer(u64),
    /// Bulk data until this time.
    Until(Time),
    /// Media that the server writes at a constant rate from the flow's start.
    Media(CbrSpec),
    /// The requests of a client, by its index in [`RunSpec::clients`].
    Client(usize),
    /// The traffic of programs, by their index in [`RunSpec::commands`]. The simulator does not run them and sends
    /// nothing.
    Command(usize),
}

/// Programs at both ends of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandSpec {
    /// Its name in messages and files.
    pub name: String,
    /// The shell command on the servers' host, from before the run until its end.
    pub server: Option<String>,
    /// The shell command on the client's host, from the flow's start.
    pub client: String,
    /// The client is ended after this time, and at the end of the run in any case.
    pub limit: Option<TimeDelta>,
    /// The kind of flow records that the client writes; `None` if it writes none.
    pub records: Option<CommandRecords>,
    /// Whether the programs see to their congestion control themselves, as those that speak QUIC do: it need
    /// be none that the kernel has.
    pub own_cc: bool,
}

/// The kind of flow records that the client of a command writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandRecords {
    /// Requests and their answers.
    Objects,
    /// Requests, and how music was heard.
    Audio,
}

impl FlowSpec {
    /// A receive window that never binds.
    pub const WIDE_OPEN: u64 = 1 << 40;
}

impl<S: ControllerSpec> FlowSpec<S> {
    /// A flow that starts at once over the path's own RTT, never held back by its receiver.
    pub const fn new(cc: S, workload: Workload) -> Self {
        Self {
            cc,
            path: 0,
            host: None,
            ecn: Ecn::NotEct,
            start: Time::ZERO,
            rtt: None,
            workload,
            receive_window: FlowSpec::WIDE_OPEN,
            resume: None,
        }
    }
}

impl<S: ControllerSpec> RunSpec<S> {
    /// Flows over a single path, until `end`.
    pub fn over(path: PathSpec, flows: Vec<FlowSpec<S>>, seed: u64, end: Time) -> Self {
        Self {
            links: Vec::new(),
            paths: vec![path],
            clients: Vec::new(),
            commands: Vec::new(),
            flows,
            seed,
            warmup: Time::ZERO,
            end,
            sample_every: None,
        }
    }

    /// The client of the flow of index `flow`, before it has done anything; `None` if the flow has none,
    /// or one that its own check refuses.
    pub fn client_of(&self, flow: u32) -> Option<Client> {
        let spec = self.flows.get(flow as usize)?;
        let Workload::Client(client) = spec.workload else { return None };
        let rng = Rng::new(self.seed, CLIENT_STREAM + u64::from(flow));
        Client::new(self.clients.get(client)?.clone(), spec.start, rng).ok()
    }

    /// The programs of `flow`, if it has such.
    pub fn command_of(&self, flow: &FlowSpec<S>) -> Option<&CommandSpec> {
        let Workload::Command(command) = flow.workload else { return None };
        self.commands.get(command)
    }

    /// The number that queues know the host of the client of the flow of index `flow` by. Hosts of
    /// flows that name none do not meet those that are named.
    pub fn host_of(&self, flow: u32) -> u32 {
        let named = self.flows.get(flow as usize).and_then(|flow| flow.host);
        named.unwrap_or(Self::FIRST_UNNAMED_HOST | flow)
    }

    /// The paths, with all flows on them and no packet.
    pub fn network<D: Body, U: Body, E: Copy>(&self) -> Network<D, U, E> {
        let mut network = Network::new(NetworkSpec {
            links: &self.links,
            paths: &self.paths,
            packet_bytes: PACKET_BYTES,
            ack_bytes: HEADER_BYTES,
            seed: self.seed,
        });
        network.reserve(self.flows.len());
        for (index, flow) in (0..).zip(&self.flows) {
            let (path, host, rtt) = (flow.path, self.host_of(index), flow.rtt);
            network.add_flow(FlowPath { path, host, rtt, back: BackSpec::default() });
        }
        network
    }
}
