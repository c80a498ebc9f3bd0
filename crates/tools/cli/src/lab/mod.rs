//! `uncork lab`: scenarios, run and merged.

mod agree;
mod args;
mod catalogue;
mod directory;
mod dry_run;
mod finish;
mod from_log;
mod from_records;
mod internet;
mod merge;
mod presets;
mod run;
pub(crate) mod source;
mod work;

pub(crate) use args::LabArgs;
use args::LabCommand;
pub(crate) use finish::warn_of_doubts;

use crate::failure::Failure;

pub(crate) fn lab(args: &LabArgs) -> Result<(), Failure> {
    match &args.command {
        LabCommand::List => catalogue::list(),
        LabCommand::Show { name } => catalogue::show(name),
        LabCommand::Presets { name } => presets::presets(name.as_deref()),
        LabCommand::Run(args) => run::run(args),
        LabCommand::Agree(args) => agree::agree(args),
        LabCommand::FromLog(args) => from_log::from_log(args),
        LabCommand::FromRecords(args) => from_records::from_records(args),
        LabCommand::Internet(args) => internet::internet(args),
        LabCommand::Merge(args) => merge::merge(args),
    }
}
