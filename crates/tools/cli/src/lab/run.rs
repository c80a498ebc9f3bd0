//! The commands of `uncork lab`, and `uncork lab run` itself.

use std::env;

use uncork_lab::Suite;

use super::args::{LabArgs, LabCommand, RunArgs};
use super::finish::{Finish, Places, places};
use super::source::{self, Sweep};
use super::work::{Work, open};
use super::{agree, catalogue, dry_run, from_log, merge};
use crate::failure::Failure;
use crate::interrupt::flag_on_signal;
use crate::progress::ProgressTracker;

pub(crate) fn run(args: &LabArgs) -> Result<(), Failure> {
    match &args.command {
        LabCommand::List => catalogue::list(),
        LabCommand::Show { name } => catalogue::show(name),
        LabCommand::Presets { name } => catalogue::presets(name.as_deref()),
        LabCommand::Run(args) => scenarios(args),
        LabCommand::Agree(args) => agree::run(args),
        #[cfg(feature = "full")]
        LabCommand::Full(command) => crate::full::lab::run(command),
        LabCommand::FromLog(args) => from_log::run(args),
        LabCommand::Merge(args) => merge::run(args),
    }
}

fn scenarios(args: &RunArgs) -> Result<(), Failure> {
    let resolved = args.resolved(|name| env::var(name).ok()).map_err(|error| {
        let choice = args.shard.map(|choice| choice.to_string()).unwrap_or_default();
        Failure::value("--shard <I/N>", choice, error)
    })?;
    let args = &resolved;
    let stop = flag_on_signal()?;
    // A suite has a joint report only if it is run alone.
    let suite = match args.scenarios.as_slice() {
        [only] => Suite::find(only),
        _ => None,
    };
    let given = suite.as_ref().map_or(&args.scenarios, |suite| &suite.members);
    let sweeps = given.iter().map(|given| source::read(args, given));
    let sweeps: Vec<Sweep> = sweeps.collect::<Result<_, _>>()?;
    let names: Vec<&str> = sweeps.iter().map(|sweep| sweep.scenario.name.as_str()).collect();
    let Places { root, each } = places(args.output.output.as_deref(), &names, !args.dry_run)?;
    let mut works = Vec::new();
    for (sweep, place) in sweeps.iter().zip(&each) {
        let directory = place.as_ref().map(|place| open(place, sweep, args.runs.resume));
        works.push(Work { args, sweep, directory: directory.transpose()?, again: args.again() });
    }
    if args.dry_run {
        return dry_run::print(&works, args.on, args.output.format);
    }
    let mut finish = Finish::new(&args.output, root, suite);
    let tracker = ProgressTracker::of(sweeps.iter().map(|sweep| &sweep.scenario));
    for (nth, work) in works.iter().enumerate() {
        tracker.expect(nth, &work.items());
    }
    for (nth, work) in works.iter().enumerate() {
        work.run((&tracker, nth), &stop, &mut finish)?;
    }
    finish.suite(|suite| args.command(suite.name))?;
    finish.verdict()
}
