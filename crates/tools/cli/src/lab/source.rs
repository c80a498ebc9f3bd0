//! Loads a scenario to run.

use uncork_lab::{Manifest, Scenario};

use super::args::RunArgs;
use crate::failure::Failure;
use crate::{left_out, scenario};

/// The argument that names scenarios.
const ARGUMENT: &str = "<NAME|FILE>...";

/// A parsed scenario and the data stored with its runs.
#[derive(Debug)]
pub(super) struct Sweep {
    pub(super) scenario: Scenario,
    pub(super) manifest: Manifest,
}

/// Reads the scenario given as `given` on the command line.
pub(super) fn read(args: &RunArgs, given: &str) -> Result<Sweep, Failure> {
    left_out::check_engine(args.on)?;
    let (scenario, files) = scenario::read(ARGUMENT, given, &args.settings(), args.output.color)?;
    args.on.check(&scenario).map_err(|error| Failure::Usage(error.message))?;
    if !args.output.quiet {
        for warning in scenario.warnings() {
            eprintln!("warning: {}: {warning}", scenario.name);
        }
    }
    let manifest = Manifest::new(&scenario, files, args.on, args.command(given));
    let manifest = manifest.of_shard(args.shard());
    Ok(Sweep { scenario, manifest })
}
