//! A validated scenario.

use uncork_cc::CcSpec;
use uncork_flow::FlowRecord;
use uncork_path::{HostJitter, LinkRate, PathSpec, link_rate};
use uncork_sim::{Offload, RunSpec};
use uncork_units::{Rate, Time, TimeDelta};

use super::measured::Carries;
use super::plan::{CellPlan, ClientActivity, FlowPlan, PathPlan};
use super::question::{Figure, Published, Threshold};

/// A scenario: every combination of its axes' values is a cell, and every cell runs with every
/// seed.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its name: the file name without the extension.
    pub name: String,
    /// One-line title.
    pub title: String,
    /// Description, in paragraphs.
    pub about: String,
    /// Assumptions where the sources leave something open.
    pub assumptions: Vec<String>,
    /// The text that was run, including the values set on the command line.
    pub text: String,
    /// The axes of the matrix, slowest first.
    pub axes: Vec<Axis>,
    /// Runs per cell.
    pub seeds: u32,
    /// Seed of the first run; the others follow it.
    pub first_seed: u64,
    /// Time at the beginning of a run that is excluded from rates.
    pub warmup: TimeDelta,
    /// Sampling interval of each flow's state in the runs of `series_seeds`.
    pub sample_every: Option<TimeDelta>,
    /// The seeds of these runs.
    pub series_seeds: Vec<u64>,
    /// The cells; the last axis varies fastest.
    pub cells: Vec<Cell>,
    /// Requirements.
    pub thresholds: Vec<Threshold>,
    /// The figures.
    pub figures: Vec<Figure>,
    /// Published results.
    pub published: Vec<Published>,
}

/// An axis of the matrix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Keys of its values: `path.loss`, or `path.rate,path.rtt`.
    pub key: String,
    /// Name in tables and figures, unique in the scenario.
    pub name: String,
    /// Names of its values in tables and figures.
    pub values: Vec<String>,
    /// The values as written in the file, which may also refer to them this way.
    pub(crate) written: Vec<String>,
    /// The keys it varies.
    pub(crate) parts: Vec<AxisPart>,
}

/// A key varied by an axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AxisPart {
    /// The key: `path.loss`.
    pub(crate) key: String,
    /// Its content for each value of the axis.
    pub(crate) values: Vec<String>,
}

/// A combination of the axes' values.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The index of the value of each axis.
    pub point: Vec<usize>,
    /// The classes of traffic, in the order of the file.
    pub classes: Vec<Class>,
    /// End of a run.
    pub end: Time,
    /// The time that simulated hosts take for each packet.
    pub(crate) host_jitter: HostJitter,
    /// Who cuts bursts of simulated hosts into segments, if the scenario says.
    pub(crate) offload: Option<Offload>,
    /// The rate of each server's network card.
    pub(crate) card: Option<Rate>,
    /// Traffic and paths of its runs, before a seed draws values.
    pub(crate) plan: CellPlan,
}

/// A class of traffic: flows with the same specification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// Its name, such as `clients`.
    pub name: String,
    /// Its controllers; flows alternate among them.
    pub ccs: Vec<String>,
    /// The kind of traffic.
    pub carries: Carries,
    /// Number of flows; `u64::MAX` for arrivals.
    pub flows: u64,
    /// Whether it is background traffic.
    pub background: bool,
    /// Whether each of its flows has separate links.
    pub own_links: bool,
    /// Duration of each flow, unless it ends with a completed transfer; it ends with the run at the
    /// latest.
    pub lasts: Option<TimeDelta>,
}

impl Class {
    pub(crate) fn of(flow: &FlowPlan, path: &PathPlan, background: bool) -> Self {
        let arrive = matches!(flow.work, ClientActivity::Arrivals(_));
        Self {
            name: flow.name.clone(),
            ccs: distinct(&flow.ccs),
            carries: Carries::of(&flow.work),
            flows: if arrive { u64::MAX } else { flow.count },
            background,
            own_links: path.own_per_flow,
            lasts: flow.work.lasts(),
        }
    }

    /// Whether its flows send without an end of their own over a link that they share.
    pub(crate) fn is_shared_stream(&self) -> bool {
        self.carries == Carries::Streams && !self.own_links
    }
}

impl Cell {
    /// When the flows of a class start and end at the latest.
    pub(crate) fn span(&self, class: &Class, plan: &FlowPlan) -> [TimeDelta; 2] {
        let end = self.end.since(Time::ZERO);
        let lasts = class.lasts.unwrap_or(TimeDelta::MAX);
        [plan.start.min(end), (plan.start + lasts).min(end)]
    }

    /// End of measurement of an unfinished flow, in nanoseconds since the start of the run.
    pub(crate) fn end_of(&self, flow: &FlowRecord) -> u64 {
        let class = self.classes.iter().find(|class| class.name == flow.group);
        let Some(lasts) = class.and_then(|class| class.lasts) else { return self.end.as_nanos() };
        // What a server wrote too fast for the link arrives after its last write.
        let late = if self.is_media(flow) { flow.busy_ns } else { 0 };
        flow.start_ns.saturating_add(lasts.as_nanos().max(late)).min(self.end.as_nanos())
    }

    fn is_media(&self, flow: &FlowRecord) -> bool {
        let plan = self.plan.flows.iter().find(|plan| flow.group == plan.name);
        plan.is_some_and(|plan| plan.work.is_media())
    }

    /// The path of a class, and the links that it crosses: their places and rates in the run with `seed`.
    /// `None` if each flow has links of its own.
    pub(crate) fn links_of(
        &self,
        class: &str,
        seed: u64,
    ) -> Option<(&PathSpec, Vec<(usize, LinkRate)>)> {
        let plan = self.plan.flows.iter().find(|plan| plan.name == class)?;
        let path = self.plan.paths.get(plan.path).filter(|path| !path.own_per_flow)?;
        // Paths of populations come after the shared ones, see `Builder::new`.
        let before = self.plan.paths[..plan.path].iter().filter(|path| !path.own_per_flow).count();
        let own = (self.plan.links.len() + before, &path.spec.link);
        let shared = path.spec.via.iter().map(|place| (*place, &self.plan.links[*place]));
        let links = shared.chain([own]).map(|(place, link)| (place, link_rate(link, place, seed)));
        Some((&path.spec, links.collect()))
    }
}

/// The names of distinct controllers, in the order of the file.
pub(crate) fn distinct(ccs: &[CcSpec]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in ccs.iter().map(ToString::to_string) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// One run of a cell.
#[derive(Clone, Debug)]
pub struct Instance {
    /// The run specification.
    pub run: RunSpec,
    /// The class index of each flow.
    pub class_of_flow: Vec<u32>,
    /// For each flow the first flow of its client. Paired clients, which have equal paths, count as
    /// one.
    pub client_of_flow: Vec<u32>,
}

#[cfg(test)]
impl Scenario {
    /// An empty scenario for tests.
    pub(crate) fn empty(name: &str) -> Self {
        Self {
            name: name.into(),
            title: String::new(),
            about: String::new(),
            assumptions: Vec::new(),
            text: String::new(),
            axes: Vec::new(),
            seeds: 8,
            first_seed: 1,
            warmup: TimeDelta::ZERO,
            sample_every: None,
            series_seeds: vec![1],
            cells: Vec::new(),
            thresholds: Vec::new(),
            figures: Vec::new(),
            published: Vec::new(),
        }
    }
}
