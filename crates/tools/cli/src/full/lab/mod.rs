//! `uncork lab from-records` and `uncork lab internet`: the records of a server, as a scenario or simulated.

mod args;
mod from_records;
mod internet;

pub(crate) use args::LabCommand;

use crate::failure::Failure;

pub(crate) fn run(command: &LabCommand) -> Result<(), Failure> {
    match command {
        LabCommand::FromRecords(args) => from_records::run(args),
        LabCommand::Internet(args) => internet::run(args),
    }
}
