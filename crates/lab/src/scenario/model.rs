//! A checked scenario.

use uncork_flow::FlowRecord;
use uncork_sim::RunSpec;
use uncork_units::{Time, TimeDelta};

use super::measured::Carries;
use super::plan::Plan;
use super::question::{Figure, Published, Threshold};

/// A scenario: every combination of its axes' values is a cell, and every cell is run with every seed.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its name: that of the file without its ending.
    pub name: String,
    /// One line.
    pub title: String,
    /// What it is about, in paragraphs.
    pub about: String,
    /// Assumptions where sources leave something open.
    pub assumptions: Vec<String>,
    /// The text that was run, with all that was set on the command line.
    pub text: String,
    /// The axes of the matrix, the slowest first.
    pub axes: Vec<Axis>,
    /// Runs of each cell.
    pub seeds: u32,
    /// Seed of the first run; the others follow it.
    pub first_seed: u64,
    /// Time at the beginning of a run that rates leave out.
    pub warmup: TimeDelta,
    /// How often to sample the state of each flow, in the runs of `series_seeds`.
    pub sample_every: Option<TimeDelta>,
    /// The seeds of these runs.
    pub series_seeds: Vec<u64>,
    /// The cells, the last axis running fastest.
    pub cells: Vec<Cell>,
    /// What must hold.
    pub thresholds: Vec<Threshold>,
    /// What is drawn.
    pub figures: Vec<Figure>,
    /// What others have published.
    pub published: Vec<Published>,
}

/// A quantity that is varied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Keys of its values: `path.loss`, or `path.rate,path.rtt`.
    pub key: String,
    /// Name in tables and figures, unique in the scenario.
    pub name: String,
    /// Names of its values in tables and figures.
    pub values: Vec<String>,
    /// The values as written in the file, which may refer to them too.
    pub(crate) written: Vec<String>,
    /// The places that it varies.
    pub(crate) parts: Vec<AxisPart>,
}

/// A place that an axis varies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AxisPart {
    /// The place: `path.loss`.
    pub(crate) key: String,
    /// What is put there for each value of the axis.
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
    /// The traffic and paths of its runs, before a seed draws values.
    pub(crate) plan: Plan,
}

/// A class of traffic: flows with the same description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// Its name, such as `clients`.
    pub name: String,
    /// Its controllers; flows take them in turn.
    pub ccs: Vec<String>,
    /// What its flows carry.
    pub carries: Carries,
    /// How many flows it has; of arrivals, as many as come.
    pub flows: u64,
    /// Whether it is background traffic.
    pub background: bool,
    /// Whether each of its flows has links of its own.
    pub own_links: bool,
    /// Rate of the link that its flows share, in bits per second; the mean of one that varies. `None`
    /// where each has its own.
    pub link_bps: Option<u64>,
    /// Duration of each flow, unless it ends when something has arrived; it ends with the run at
    /// the latest.
    pub lasts: Option<TimeDelta>,
}

impl Cell {
    /// End of measuring of a flow that did not finish, in nanoseconds since the start of the run.
    pub(crate) fn end_of(&self, flow: &FlowRecord) -> u64 {
        let class = self.classes.iter().find(|class| class.name == flow.group);
        let lasts = class.and_then(|class| class.lasts);
        let end = self.end.as_nanos();
        lasts.map_or(end, |span| flow.start_ns.saturating_add(span.as_nanos()).min(end))
    }
}

/// One run of a cell.
#[derive(Clone, Debug)]
pub struct Instance {
    /// What to simulate.
    pub run: RunSpec,
    /// For each flow of the run the index of its class.
    pub class_of_flow: Vec<u32>,
    /// For each flow of the run the first flow of its client. Clients that are paired, and so have
    /// equal paths, are one here.
    pub client_of_flow: Vec<u32>,
}

#[cfg(test)]
impl Scenario {
    /// A scenario of nothing, for tests that fill it.
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
