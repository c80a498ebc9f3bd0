//! A scenario that has been read and found in order.

use uncork_sim::RunSpec;
use uncork_units::{Time, TimeDelta};

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
    /// What had to be assumed where sources leave something open.
    pub assumptions: Vec<String>,
    /// The text that was run, with all that was set on the command line.
    pub text: String,
    /// The axes of the matrix, the slowest first.
    pub axes: Vec<Axis>,
    /// Runs of each cell.
    pub seeds: u32,
    /// Seed of the first run; the others follow it.
    pub first_seed: u64,
    /// What is left out of rates at the beginning of a run.
    pub warmup: TimeDelta,
    /// How often to write down the inside of each flow of the first seed.
    pub sample_every: Option<TimeDelta>,
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
    /// Where its values are put, such as `path.loss` or `flow.main.cc`.
    pub key: String,
    /// The values as people write them.
    pub values: Vec<String>,
}

/// A combination of the axes' values.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The index of the value of each axis.
    pub point: Vec<usize>,
    /// The classes of traffic, in the order of the file.
    pub classes: Vec<Class>,
    /// When a run ends, finished or not.
    pub end: Time,
}

/// A class of traffic: flows that have their description in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// Its name, such as `clients`.
    pub name: String,
    /// Its controllers; flows take them in turn.
    pub ccs: Vec<String>,
    /// Whether it is there only to be in the way of others.
    pub background: bool,
}

/// One run of a cell.
#[derive(Clone, Debug)]
pub struct Instance {
    /// What to simulate.
    pub run: RunSpec,
    /// For each flow of the run the index of its class.
    pub class_of_flow: Vec<u32>,
}
