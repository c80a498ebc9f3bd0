//! All runs of a scenario: listing, running, storing and evaluating them.

mod archive;
mod auto;
#[cfg(not(target_family = "wasm"))]
mod files;
mod manifest;
mod plan;
mod results;
mod run;
mod stored;

pub use archive::{ARCHIVE_NAME, ArchiveIndex, is_archive, part_name};
pub use auto::{AutoShardError, ShardChoice};
#[cfg(not(target_family = "wasm"))]
pub use files::DataTable;
pub use manifest::{MANIFEST_NAME, Manifest, ManifestError};
pub use plan::{Item, Shard, ShardError, items};
pub use results::{COMMAND_FILES, SWEEP_FILES, SweepResults, cell_name};
pub use run::{FinishedRun, Progress, run_items};
pub use stored::{DamagedRun, StateNames};
