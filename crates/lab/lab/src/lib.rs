//! Scenarios, which define what is run, and the evaluation of their runs. A comparison of
//! controllers over a path is a scenario too.
//!
//! [`Scenario::parse`] reads a scenario from a file; [`CompareSpec::scenario`] creates one from a
//! comparison. [`run_items`] runs it, and [`SweepResults`] turns the runs into reports. This crate
//! does not print or read a clock, and equal scenarios give equal results with any number of
//! threads.
#![forbid(unsafe_code)]

mod agree;
mod builtin;
mod column;
mod compare;
mod decimal;
mod dry_run;
mod engine;
mod evaluate;
mod forecast;
mod logs;
mod preset;
mod scenario;
mod suite;
mod sweep;
#[cfg(test)]
mod testing;
mod text;

pub use agree::mark_late_hosts;
pub use builtin::{Builtin, NoFiles};
pub use column::{Column, ColumnError};
pub use compare::{CompareError, CompareSpec, Losses, OptionError, Start, Workload};
pub use dry_run::{DryRunDocument, ScenarioPlan};
pub use engine::{Engine, EngineError};
pub use evaluate::{CommandOutcome, RunOutcome};
pub use forecast::{Clocks, CostForecast, RunCost};
pub use logs::{ClientPath, LogFormat, LogPaths};
pub use preset::{Preset, PresetValue};
pub use scenario::{
    Axis, Carries, Cell, Class, Expectation, Figure, FigureKind, Files, Instance, Metric, Place,
    Published, PublishedRange, Quantity, Scenario, ScenarioError, Selection, SizeEstimate, Source,
    Statistic, Threshold,
};
pub use suite::{NotJudged, Suite};
#[cfg(not(target_family = "wasm"))]
pub use sweep::DataTable;
pub use sweep::{
    ARCHIVE_NAME, ArchiveIndex, AutoShardError, COMMAND_FILES, DamagedRun, FinishedRun, Item,
    MANIFEST_NAME, Manifest, ManifestError, Progress, SWEEP_FILES, Shard, ShardChoice, ShardError,
    StateNames, SweepResults, cell_name, is_archive, items, part_name, run_items,
};

/// The program version with a hash of the sources that affect results.
pub const VERSION: &str =
    concat!(env!("CARGO_PKG_VERSION"), " (build ", env!("UNCORK_BUILD_ID"), ")");
