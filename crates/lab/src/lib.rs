//! Scenarios, which say what is run, and what their runs amount to. A comparison of controllers over a
//! path is one of them.
//!
//! [`Scenario::parse`] reads a scenario from a file, [`CompareSpec::scenario`] makes one of a
//! comparison; [`run_items`] runs it, and [`SweepResults`] makes of the runs what people read. Nothing
//! here prints or reads a clock, and equal scenarios give equal results whatever the number of threads.
#![forbid(unsafe_code)]

mod agree;
mod builtin;
mod column;
mod compare;
mod engine;
mod evaluate;
mod parallel;
mod preset;
mod scenario;
mod suite;
mod sweep;
#[cfg(test)]
mod testing;

pub use builtin::Builtin;
pub use column::{Column, ColumnError};
pub use compare::{CompareError, CompareSpec, Workload};
pub use engine::{Engine, EngineError};
pub use evaluate::{CommandOutcome, RunOutcome};
pub use preset::{Preset, PresetValue};
pub use scenario::{
    Axis, Carries, Cell, Class, Expectation, Figure, FigureKind, Files, Instance, Load, Metric,
    Place, Published, Quantity, Scenario, ScenarioError, Selection, Source, Statistic, Threshold,
};
pub use suite::{NotJudged, Suite};
pub use sweep::{
    ARCHIVE_NAME, ArchiveIndex, COMMAND_FILES, DamagedRun, FinishedRun, Item, MANIFEST_NAME,
    Manifest, ManifestError, Progress, SWEEP_FILES, Shard, ShardError, StateNames, SweepResults,
    cell_name, items, run_items,
};

/// The version of this program with a hash of the sources that decide its results.
pub const VERSION: &str =
    concat!(env!("CARGO_PKG_VERSION"), " (build ", env!("UNCORK_BUILD_ID"), ")");
