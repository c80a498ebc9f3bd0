//! Comparisons: the same workload over the same path with several controllers, run on the simulator
//! into a result document; and scenarios, which say in a file what is run.
//!
//! [`run`] takes a [`CompareSpec`] and gives an [`Outcome`]; [`document`] and [`files`] make of it
//! what people read. [`Scenario::parse`], [`run_items`] and [`SweepResults`] do so for scenarios.
//! Nothing here prints or reads a clock, and equal specifications give equal
//! results whatever the number of threads.
#![forbid(unsafe_code)]

mod aggregate;
mod agree;
mod builtin;
mod column;
mod compare;
mod document;
mod engine;
mod evaluate;
mod figures;
mod files;
mod parallel;
mod preset;
mod run;
mod scenario;
mod suite;
mod sweep;
mod verdict;

pub use builtin::Builtin;
pub use column::{Column, ColumnError};
pub use compare::{CompareError, CompareSpec, Workload};
pub use document::document;
pub use engine::{Engine, EngineError};
pub use evaluate::{CommandOutcome, RunOutcome};
pub use files::{FILE_NAMES, files};
pub use preset::{Preset, PresetValue};
pub use run::{ColumnRuns, Outcome, Progress, SampledRun, run};
pub use scenario::{
    Axis, Carries, Cell, Class, Expectation, Figure, FigureKind, Files, Instance, Load, Metric,
    Place, Published, Quantity, Scenario, ScenarioError, Selection, Source, Statistic, Threshold,
};
pub use suite::{NotJudged, Suite};
pub use sweep::{
    ARCHIVE_NAME, ArchiveIndex, COMMAND_FILES, DamagedRun, FinishedRun, Item, MANIFEST_NAME,
    Manifest, ManifestError, SWEEP_FILES, Shard, ShardError, StateNames, SweepResults, cell_name,
    items, run_items,
};

/// The version of this program with a hash of the sources that decide its results.
pub const VERSION: &str =
    concat!(env!("CARGO_PKG_VERSION"), " (build ", env!("UNCORK_BUILD_ID"), ")");
