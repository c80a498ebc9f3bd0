//! Specifications of runs.

use uncork_apps::{CbrSpec, Client, ClientSpec};
use uncork_cc::{CcSpec, ControllerSpec, InitialWindow, ResumeHint};
use uncork_path::{
    BackSpec, Body, Ecn, FlowPath, HostJitter, LinkSpec, LossSpec, Network, NetworkSpec, PathSpec,
    Step,
};
use uncork_units::{Rate, Rng, Time, TimeDelta};

use crate::offload::Offload;
use crate::segments::{HEADER_BYTES, PACKET_BYTES};

/// Seed stream for clients, separate for each flow.
const CLIENT_STREAM: u64 = 6 << 32;

/// One run: flows over paths.
#[derive(Clone, Debug)]
pub struct RunSpec<S: ControllerSpec = CcSpec> {
    /// Links shared by several paths, crossed before the paths' own.
    pub links: Vec<LinkSpec>,
    /// The paths. All flows of a path share its links.
    pub paths: Vec<PathSpec>,
    /// The requesting clients.
    pub clients: Vec<ClientSpec>,
    /// Programs for runs on real hosts.
    pub commands: Vec<CommandSpec>,
    /// Receive windows that change, in order of time. The end of a window never moves back (RFC 9293 §3.8.6).
    pub receive_window_steps: Vec<Vec<Step<u64>>>,
    /// Migrations of connections, in order of time. For QUIC endpoints: segments of TCP ignore them.
    pub migrations: Vec<Vec<Step<Migration>>>,
    /// The flows.
    pub flows: Vec<FlowSpec<S>>,
    /// The time that the hosts at both ends take for each packet. Real hosts have their own.
    pub host_jitter: HostJitter,
    /// Who cuts bursts into segments. Real hosts do as they are set up.
    pub offload: Offload,
    /// The rate of the network card of each flow's server, counted in bytes on the wire; `None` for one that
    /// takes no time. A server hands its card the next burst when the one before has left.
    pub card: Option<Rate>,
    /// Seed of all random numbers.
    pub seed: u64,
    /// End of the warm-up. Its deliveries are counted separately.
    pub warmup: Time,
    /// When to stop, even if flows are not finished.
    pub end: Time,
    /// Interval of the series; `None` for no series.
    pub sample_every: Option<TimeDelta>,
}

/// One flow from a server to a client.
#[derive(Clone, Copy, Debug)]
pub struct FlowSpec<S: ControllerSpec = CcSpec> {
    /// The server's controller.
    pub cc: S,
    /// Index of its path in [`RunSpec::paths`].
    pub path: usize,
    /// The client's host, for queues that share a link among hosts; `None` for a separate host.
    pub host: Option<u32>,
    /// The ECN field of the flow's data. The server reacts to marks if this is ECN-capable. With ECT(0), SYN/ACKs and
    /// retransmissions are Not-ECT (RFC 3168 §6.1.1, §6.1.5); with ECT(1) they are ECT(1). The client's packets are
    /// Not-ECT (§6.1.4).
    pub ecn: Ecn,
    /// Whether a TCP connection has AccECN; `None` for what the ECN field needs: all of it with ECT(1), else none.
    pub accecn: Option<AccEcn>,
    /// When the client starts to connect.
    pub start: Time,
    /// RTT without queueing; `None` uses the path's.
    pub rtt: Option<TimeDelta>,
    /// Its workload.
    pub workload: Workload,
    /// The server's initial congestion window; `None` is the engine's default, ten packets.
    pub initial_window: Option<InitialWindow>,
    /// The client's receive window in bytes.
    pub receive_window: u64,
    /// Index of its later receive windows in [`RunSpec::receive_window_steps`].
    pub receive_window_steps: Option<usize>,
    /// Index of its migrations in [`RunSpec::migrations`].
    pub migrations: Option<usize>,
    /// When the client acknowledges data.
    pub acks: AckPolicy,
    /// An earlier connection's observations of the path, for Careful Resume.
    pub resume: Option<ResumeHint>,
}

/// What client and server of a TCP connection have of AccECN (RFC 9768).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccEcn {
    /// Nothing: the client has the ECN of RFC 3168, and packets leave with ECT(0) instead of ECT(1). The server learns of
    /// each mark, where RFC 3168 reports that there were some.
    None,
    /// The ACE field alone: a middlebox removes the option.
    Counter,
    /// The ACE field and the option.
    Option,
}

/// A change of the client's address (RFC 9000 §9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Migration {
    /// The client moves to another network and knows it, as from Wi-Fi to a mobile network: a new IP address. Packets to
    /// the old one are lost, and the server measures the path again (RFC 9000 §9.4).
    Address,
    /// A NAT sends what follows from another port, and the client does not know it. The old port still delivers, as
    /// mappings outlive their last packet (RFC 4787 §4.3). The server keeps what it has measured.
    Port,
}

impl Migration {
    /// The maximum number of migrations of a connection.
    pub const MAX_COUNT: usize = 1000;
}

/// When a client acknowledges data that arrives in order. Holes, changes of the CE mark and the end of a
/// message are acknowledged at once, and so are the first segments of a connection over TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckPolicy {
    /// With this segment at the latest, counted from the last acknowledgement.
    pub every: u32,
    /// This long after the first unacknowledged one at the latest; `None` for the delay that clients of the
    /// protocol have: 40 ms over TCP, as Linux at least, 25 ms over QUIC (RFC 9000 §18.2).
    pub delay: Option<TimeDelta>,
}

impl AckPolicy {
    /// Every second segment (RFC 9293 §3.8.6.3, RFC 9000 §13.2.2).
    pub const USUAL: Self = Self { every: 2, delay: None };
    /// Supported numbers of segments.
    pub const EVERY: (u32, u32) = (1, 1000);
    /// Supported delays.
    pub const DELAYS: (TimeDelta, TimeDelta) = (TimeDelta::from_millis(1), TimeDelta::from_secs(1));
}

/// A flow's workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// A transfer of this many bytes, which ends the flow.
    Transfer(u64),
    /// Bulk data until this time.
    Until(Time),
    /// Media written by the server at a constant rate from the flow's start.
    Media(CbrSpec),
    /// Requests of a client, by its index in [`RunSpec::clients`].
    Client(usize),
    /// Traffic of programs, by index in [`RunSpec::commands`]. The simulator does not run them and
    /// sends nothing.
    Command(usize),
}

/// Programs at both ends of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandSpec {
    /// Its name in messages and files.
    pub name: String,
    /// Shell command on the servers' host, running from before the run until its end.
    pub server: Option<String>,
    /// Shell command on the client's host, started with the flow.
    pub client: String,
    /// Maximum run time of the client; it is also stopped at the end of the run.
    pub limit: Option<TimeDelta>,
    /// Kind of flow records the client writes, if any.
    pub records: Option<CommandRecords>,
    /// Whether the programs have their own congestion control, as QUIC programs do. It then need
    /// not be available in the kernel.
    pub own_cc: bool,
}

/// Kind of flow records written by a command's client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandRecords {
    /// Requests and their answers.
    Objects,
    /// Requests and the playback of audio.
    Audio,
}

impl FlowSpec {
    /// A receive window that never limits the sender.
    pub const WIDE_OPEN: u64 = 1 << 40;
}

impl<S: ControllerSpec> FlowSpec<S> {
    /// The ECN field of its packets over TCP, and how its client reports marks. Without AccECN a host does not send
    /// ECT(1) (RFC 9331 §4.2).
    pub fn negotiated_ecn(&self) -> (Ecn, AccEcn) {
        let usual = if self.ecn == Ecn::Ect1 { AccEcn::Option } else { AccEcn::None };
        match (self.ecn, self.accecn.unwrap_or(usual)) {
            (Ecn::Ect1, AccEcn::None) => (Ecn::Ect0, AccEcn::None),
            negotiated => negotiated,
        }
    }

    /// A flow that starts at once, with the path's RTT and no limit by its receiver.
    pub const fn new(cc: S, workload: Workload) -> Self {
        Self {
            cc,
            path: 0,
            host: None,
            ecn: Ecn::NotEct,
            accecn: None,
            start: Time::ZERO,
            rtt: None,
            workload,
            initial_window: None,
            receive_window: FlowSpec::WIDE_OPEN,
            receive_window_steps: None,
            migrations: None,
            acks: AckPolicy::USUAL,
            resume: None,
        }
    }
}

impl<S: ControllerSpec> RunSpec<S> {
    /// Flows over a single path between hosts that take no time, until `end`.
    pub fn over(path: PathSpec, flows: Vec<FlowSpec<S>>, seed: u64, end: Time) -> Self {
        Self {
            links: Vec::new(),
            paths: vec![path],
            clients: Vec::new(),
            commands: Vec::new(),
            receive_window_steps: Vec::new(),
            migrations: Vec::new(),
            flows,
            host_jitter: HostJitter::NONE,
            offload: Offload::None,
            card: None,
            seed,
            warmup: Time::ZERO,
            end,
            sample_every: None,
        }
    }

    /// The client of the flow with index `flow` in its initial state; `None` if the flow has no
    /// client or an invalid one.
    pub fn client_of(&self, flow: u32) -> Option<Client> {
        let spec = self.flows.get(flow as usize)?;
        let Workload::Client(client) = spec.workload else { return None };
        let rng = Rng::new(self.seed, CLIENT_STREAM + u64::from(flow));
        Client::new(self.clients.get(client)?.clone(), spec.start, rng).ok()
    }

    /// A part of the run that only simulated hosts have, as a scenario names it, and why.
    pub fn only_simulated(&self) -> Option<(&'static str, &'static str)> {
        let card = self.card.map(|_| ("run.card", "its hosts have no network card"));
        let own = |key| (key, "the kernel's clients acknowledge as Linux does");
        let mut policies = self.flows.iter().map(|flow| flow.acks);
        let acks = policies
            .find(|policy| *policy != AckPolicy::USUAL)
            .map(|policy| own(if policy.delay.is_some() { "ack_delay" } else { "ack_every" }));
        let reason = "sockets of the kernel have one window";
        let windows = self.flows.iter().find_map(|flow| flow.receive_window_steps);
        let accecn = self.flows.iter().find_map(|flow| flow.accecn);
        let accecn = accecn.map(|_| ("accecn", "the kernel's hosts negotiate it by themselves"));
        let copies = self.paths.iter().find(|path| path.duplicates != LossSpec::NONE);
        let copies = copies.map(|_| ("duplicates", "the emulated path delivers no packet twice"));
        let migrations = self.flows.iter().find_map(|flow| flow.migrations);
        let migrations =
            migrations.map(|_| ("migrations", "a TCP connection ends with its address"));
        let windows = windows.map(|_| ("receive_window_steps", reason));
        card.or(copies)
            .or(acks)
            .or(accecn)
            .or(windows)
            .or(migrations)
            .or_else(|| self.simulated_start())
    }

    /// A start of its own that a flow has, which sockets of the kernel do not offer.
    fn simulated_start(&self) -> Option<(&'static str, &'static str)> {
        self.flows.iter().find_map(|flow| {
            let window = flow.initial_window.map(|_| {
                let why = "sockets of the kernel have no option for it; `uncork steer` sets it on a server";
                ("initial_window", why)
            });
            let why = "the kernel's TCP resumes no earlier connection";
            window.or_else(|| flow.resume.map(|_| ("resume", why)))
        })
    }

    /// The later receive windows of a flow's client.
    pub fn receive_window_steps(&self, flow: &FlowSpec<S>) -> &[Step<u64>] {
        let steps =
            flow.receive_window_steps.and_then(|index| self.receive_window_steps.get(index));
        steps.map_or(&[], Vec::as_slice)
    }

    /// The migrations of a flow's connection.
    pub fn migrations(&self, flow: &FlowSpec<S>) -> &[Step<Migration>] {
        let steps = flow.migrations.and_then(|index| self.migrations.get(index));
        steps.map_or(&[], Vec::as_slice)
    }

    /// The programs of `flow`, if any.
    pub fn command_of(&self, flow: &FlowSpec<S>) -> Option<&CommandSpec> {
        let Workload::Command(command) = flow.workload else { return None };
        self.commands.get(command)
    }

    /// The number of the client's host of the flow with index `flow`, as used by queues. Unnamed
    /// hosts have different numbers than named ones.
    pub fn host_of(&self, flow: u32) -> u32 {
        let named = self.flows.get(flow as usize).and_then(|flow| flow.host);
        named.unwrap_or(Self::FIRST_UNNAMED_HOST | flow)
    }

    /// The paths with all flows and no packets.
    pub fn network<D: Body, U: Body, E: Copy>(&self) -> Network<D, U, E> {
        let mut network = Network::new(NetworkSpec {
            links: &self.links,
            paths: &self.paths,
            packet_bytes: PACKET_BYTES,
            ack_bytes: HEADER_BYTES,
            host_jitter: self.host_jitter,
            card: self.card,
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
