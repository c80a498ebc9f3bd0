//! One run of a cell, with everything determined by its seed.

use uncork_apps::{ArrivalSpec, ClientSpec};
use uncork_cc::CcSpec;
use uncork_path::{PathSpec, RateSpec};
use uncork_sim::{FlowSpec, RunSpec, Workload};
use uncork_units::{Rng, Time, TimeDelta};

use super::draw::{Between, Draw};
use super::model::{Cell, Instance, Scenario};
use super::opened;
use super::plan::{
    ArrivalPlan, CellPlan, ClientActivity, Draws, FlowPlan, PathPlan, SingleActivity,
};

/// Flows that share links start at random times within this span, so that equal controllers do not
/// synchronize...
const SPREAD: TimeDelta = TimeDelta::from_millis(100);
/// ...and bulk flows among themselves within this one: real ones do not start together, and in a
/// deep buffer who is first decides the shares...
const BULK_SPREAD: TimeDelta = TimeDelta::from_secs(2);
/// ...but within this part of their duration.
const BULK_PART: u64 = 10;
/// The first host number for clients with several connections; hosts named in a file are below it.
pub(super) const FIRST_HOST: u32 = 1 << 30;

impl Scenario {
    /// The run of the cell with index `cell` and `seed`. Equal arguments give equal runs.
    ///
    /// # Panics
    ///
    /// If `cell` does not exist.
    pub fn instance(&self, cell: usize, seed: u64) -> Instance {
        let mut instance = self.planned(cell, seed);
        opened::open(&mut instance, &self.cells[cell].plan, seed);
        instance
    }

    /// The same before it is simulated when programs have opened their connections.
    pub(crate) fn planned(&self, cell: usize, seed: u64) -> Instance {
        let cell = &self.cells[cell];
        let mut builder = Builder::new(cell, seed, self.warmup);
        for (class, flow) in (0..).zip(&cell.plan.flows) {
            builder.add(class, flow);
        }
        let sampled = self.series_seeds.contains(&seed);
        builder.run.sample_every = self.sample_every.filter(|_| sampled);
        let Builder { run, class_of_flow, client_of_flow, .. } = builder;
        Instance { run, class_of_flow, client_of_flow }
    }
}

impl CellPlan {
    /// Sets the default spread of start times, in runs until `end`: none unless flows share links.
    /// Not needed for arrivals.
    pub(crate) fn with_spreads(mut self, end: Time) -> Self {
        let usual: Vec<TimeDelta> =
            self.flows.iter().map(|flow| self.default_spread(flow, end)).collect();
        for (flow, usual) in self.flows.iter_mut().zip(usual) {
            flow.spread.get_or_insert(usual);
        }
        self
    }

    fn default_spread(&self, flow: &FlowPlan, end: Time) -> TimeDelta {
        if !self.shares(flow) || matches!(flow.work, ClientActivity::Arrivals(_)) {
            return TimeDelta::ZERO;
        }
        if flow.connect.is_some() {
            return SPREAD; // Of the programs.
        }
        let met = self.flows.iter().filter(|other| self.meet(flow, other));
        // The shortest of the bulk flows; none if other traffic is among them.
        let durations: Option<Vec<TimeDelta>> = met.map(|flow| flow.bulk_until(end)).collect();
        usual_spread(durations.and_then(|all| all.into_iter().min()))
    }

    /// Whether clients of `flow` share a link with other clients.
    fn shares(&self, flow: &FlowPlan) -> bool {
        let met = self.flows.iter().filter(|other| self.meet(flow, other));
        met.map(|other| other.count).fold(0, u64::saturating_add) > 1
    }

    /// Whether clients of `one` and `other`, which may be the same class, share a link.
    pub(crate) fn meet(&self, one: &FlowPlan, other: &FlowPlan) -> bool {
        let path = &self.paths[one.path];
        let mut crossed = self.paths[other.path].spec.via.iter();
        (other.path == one.path && !path.own_per_flow)
            || crossed.any(|link| path.spec.via.contains(link))
    }
}

/// The default spread of the starts of flows that share links. `bulk` is their duration if all are
/// bulk flows.
pub(crate) fn usual_spread(bulk: Option<TimeDelta>) -> TimeDelta {
    bulk.map_or(SPREAD, |duration| BULK_SPREAD.min(duration.divided_by(BULK_PART)))
}

/// Random numbers for the purpose `what` of client `index` of the class `name`. Seeded by the name,
/// not the position, so that adding a class does not affect the others.
pub(super) fn stream(seed: u64, name: &str, what: &str, index: u64) -> Rng {
    // FNV-1a (Fowler, Noll, Vo). 0xff does not occur in names.
    let bytes = name.bytes().chain([0xff]).chain(what.bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    Rng::new(Rng::new(seed, hash).next_u64(), index)
}

/// A run under construction, to which classes are added one by one.
struct Builder<'a> {
    plan: &'a CellPlan,
    seed: u64,
    run: RunSpec,
    class_of_flow: Vec<u32>,
    client_of_flow: Vec<u32>,
    /// Index in the run for each path of the plan, if all clients share it.
    shared: Vec<Option<usize>>,
    hosts: u32,
}

impl<'a> Builder<'a> {
    fn new(cell: &'a Cell, seed: u64, warmup: TimeDelta) -> Self {
        let plan = &cell.plan;
        let mut paths = Vec::new();
        let mut share = |path: &PathPlan| {
            (!path.own_per_flow).then(|| {
                paths.push(path.spec.clone());
                paths.len() - 1
            })
        };
        let shared = plan.paths.iter().map(&mut share).collect();
        let run = RunSpec {
            links: plan.links.clone(),
            paths,
            clients: Vec::new(),
            commands: Vec::new(),
            receive_window_steps: Vec::new(),
            migrations: Vec::new(),
            flows: Vec::new(),
            host_jitter: cell.host_jitter,
            offload: cell.offload.unwrap_or_default(),
            card: cell.card,
            seed,
            warmup: Time::ZERO + warmup,
            end: cell.end,
            sample_every: None,
        };
        let (class_of_flow, client_of_flow) = (Vec::new(), Vec::new());
        Self { plan, seed, run, class_of_flow, client_of_flow, shared, hosts: FIRST_HOST }
    }

    /// Adds the clients of a class.
    fn add(&mut self, class: u32, flow: &FlowPlan) {
        let before = self.run.flows.len();
        let mut first = (0, before);
        for client in 0..flow.count {
            let index = flow.draw_index(client);
            if first.0 != index {
                first = (index, self.run.flows.len());
            }
            let path = self.path(flow, index);
            let mut rng = stream(self.seed, &flow.name, "start", flow.start_index(client));
            let spread = flow.spread.unwrap_or(TimeDelta::ZERO).as_nanos();
            let start = Time::ZERO + flow.start + TimeDelta::from_nanos(rng.below(spread));
            match &flow.work {
                ClientActivity::Arrivals(plan) => {
                    self.arrive(flow, plan, (client, index), path, start, before);
                }
                ClientActivity::One(work) => {
                    let spec = FlowSpec::new(flow.cc(client), self.workload(work, start));
                    self.push(flow, FlowSpec { path, start, ..spec });
                }
            }
            self.client_of_flow.resize(self.run.flows.len(), first.1 as u32);
        }
        self.class_of_flow.resize(self.run.flows.len(), class);
    }

    /// The index of a client's path, which is its own or shared.
    fn path(&mut self, flow: &FlowPlan, index: u64) -> usize {
        let shared = self.shared.get(flow.path).copied().flatten();
        shared.unwrap_or_else(|| {
            let spec = self.plan.paths[flow.path].drawn(self.seed, &flow.name, index);
            self.run.paths.push(spec);
            self.run.paths.len() - 1
        })
    }

    /// Adds the connections of a client, which share a host. Controllers alternate between
    /// connections, or between clients if the class is paired.
    fn arrive(
        &mut self,
        flow: &FlowPlan,
        plan: &ArrivalPlan,
        (client, index): (u64, u64),
        path: usize,
        from: Time,
        before: usize,
    ) {
        let (spec, offset) = match plan {
            ArrivalPlan::Poisson { mean_gap, sizes, length } => {
                let (mean_gap, sizes, until) = (*mean_gap, sizes.clone(), from + *length);
                (ArrivalSpec::Poisson { mean_gap, sizes, from, until }, TimeDelta::ZERO)
            }
            ArrivalPlan::Trace(trace) => {
                (ArrivalSpec::Trace(trace.clone()), from.since(Time::ZERO))
            }
        };
        let rng = stream(self.seed, &flow.name, "arrivals", index);
        let host = Some(self.hosts);
        self.hosts += 1;
        for arrival in spec.arrivals(rng).into_iter().flatten() {
            let start = arrival.at + offset;
            if start >= self.run.end {
                break;
            }
            let turn = if flow.paired { client } else { (self.run.flows.len() - before) as u64 };
            let spec = FlowSpec::new(flow.cc(turn), Workload::Transfer(arrival.bytes));
            self.push(flow, FlowSpec { path, start, host, ..spec });
        }
    }

    /// The engine's workload for a client that starts at `start`.
    fn workload(&mut self, work: &SingleActivity, start: Time) -> Workload {
        match work {
            SingleActivity::Bulk(span) => {
                Workload::Until(span.map_or(self.run.end, |span| start + span))
            }
            SingleActivity::Media(spec) => Workload::Media(*spec),
            SingleActivity::Client(spec, span) => {
                let mut spec = spec.clone();
                if let (ClientSpec::Fetch(fetch), Some(span)) = (&mut spec, span) {
                    fetch.until = start + *span;
                }
                if self.run.clients.last() != Some(&spec) {
                    self.run.clients.push(spec);
                }
                Workload::Client(self.run.clients.len() - 1)
            }
            SingleActivity::Transfer(bytes) => Workload::Transfer(*bytes),
            SingleActivity::Command(command) => {
                if self.run.commands.last() != Some(command) {
                    self.run.commands.push(command.clone());
                }
                Workload::Command(self.run.commands.len() - 1)
            }
        }
    }

    fn push(&mut self, flow: &FlowPlan, spec: FlowSpec) {
        let Self { run, .. } = self;
        let receive_window_steps =
            index_of(&mut run.receive_window_steps, &flow.receive_window_steps);
        let migrations = index_of(&mut run.migrations, &flow.migrations);
        self.run.flows.push(FlowSpec {
            host: flow.host.or(spec.host),
            ecn: flow.ecn_of(spec.cc),
            accecn: flow.accecn,
            rtt: flow.rtt,
            initial_window: flow.initial_window,
            resume: flow.resume,
            receive_window: flow.receive_window,
            receive_window_steps,
            migrations,
            acks: flow.acks,
            ..spec
        });
    }
}

/// The index of a class's steps in the run's, if it has any. Flows of a class are neighbors.
fn index_of<T: Clone + PartialEq>(all: &mut Vec<Vec<T>>, steps: &[T]) -> Option<usize> {
    if steps.is_empty() {
        return None;
    }
    if all.last().map(Vec::as_slice) != Some(steps) {
        all.push(steps.to_vec());
    }
    Some(all.len() - 1)
}

impl FlowPlan {
    /// How long a bulk flow lasts in a run until `end`.
    fn bulk_until(&self, end: Time) -> Option<TimeDelta> {
        let ClientActivity::One(SingleActivity::Bulk(span)) = &self.work else { return None };
        let most = end.since(Time::ZERO + self.start);
        Some(span.unwrap_or(most).min(most))
    }

    /// The index by which client `index` draws its start: that of its controller if a program opens
    /// the connections of each.
    fn start_index(&self, index: u64) -> u64 {
        let of_controller = || self.ccs.iter().position(|cc| *cc == self.cc(index));
        let nth = self.connect.and_then(|_| of_controller());
        nth.map_or_else(|| self.draw_index(index), |nth| nth as u64)
    }

    /// The controller for this turn.
    fn cc(&self, turn: u64) -> CcSpec {
        self.ccs[(turn % self.ccs.len() as u64) as usize]
    }
}

impl PathPlan {
    /// The path for the client with draw index `index`. Each value has its own random stream.
    fn drawn(&self, seed: u64, class: &str, index: u64) -> PathSpec {
        let mut spec = self.spec.clone();
        let Draws { rate, rtt, loss, buffer } = &self.draws;
        let rng = |what| stream(seed, class, what, index);
        let rate = drawn(rate.as_ref(), rng("rate")).map(RateSpec::Constant);
        spec.link.rate = rate.unwrap_or(spec.link.rate);
        spec.rtt = drawn(rtt.as_ref(), rng("rtt")).unwrap_or(spec.rtt);
        spec.loss = drawn(loss.as_ref(), rng("loss")).unwrap_or(spec.loss);
        spec.link.buffer = drawn(buffer.as_ref(), rng("buffer")).unwrap_or(spec.link.buffer);
        spec
    }
}

fn drawn<T: Between>(draw: Option<&Draw<T>>, mut rng: Rng) -> Option<T> {
    draw?.sample(&mut rng)
}
