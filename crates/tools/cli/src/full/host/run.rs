//! The commands of `uncork host`, and `uncork host doctor` itself.

use std::fs;
use std::path::Path;

use serde::Deserialize;
use uncork_host::{FACTS_SCHEMA, HostFacts, diagnose};

use super::args::{DoctorArgs, HostArgs, HostCommand};
#[cfg(target_os = "linux")]
use super::{change, prove, watch};
use crate::failure::Failure;
use crate::print;

pub(crate) fn run(args: &HostArgs) -> Result<(), Failure> {
    match &args.command {
        HostCommand::Doctor(args) => doctor(args),
        #[cfg(target_os = "linux")]
        HostCommand::Change(command) => change::run(command),
        #[cfg(target_os = "linux")]
        HostCommand::Watch(args) => watch::run(args),
        #[cfg(target_os = "linux")]
        HostCommand::Prove(args) => prove::run(args),
    }
}

fn doctor(args: &DoctorArgs) -> Result<(), Failure> {
    let facts = match &args.facts {
        Some(file) => read(file)?,
        None => collect()?,
    };
    if let Some(file) = &args.save_facts {
        save(file, &facts)?;
    }
    let diagnosis = diagnose(&facts, args.expect.as_deref())
        .ok_or_else(|| Failure::Shown("error: the facts name no network namespace".to_owned()))?;
    print::document(args.format, &diagnosis, |diagnosis| diagnosis.text(args.notes))?;
    if diagnosis.needs_action() { Err(Failure::Status(1)) } else { Ok(()) }
}

#[cfg(target_os = "linux")]
fn collect() -> Result<HostFacts, Failure> {
    let facts = uncork_host::collect()
        .map_err(|error| Failure::Environment(format!("this host cannot be read: {error}")))?;
    let pins = uncork_steer::SteerPins::in_directory(uncork_kernel::DIRECTORY);
    let (other_programs, policies) =
        (uncork_steer::other_programs(&pins), uncork_steer::active_policies(&pins));
    Ok(HostFacts { other_programs, policies, ..facts })
}

#[cfg(not(target_os = "linux"))]
fn collect() -> Result<HostFacts, Failure> {
    let text = "only a Linux host can be examined; elsewhere give --facts FILE";
    Err(Failure::Environment(text.to_owned()))
}

/// The field that all versions of the facts have.
#[derive(Deserialize)]
struct FileHeader {
    schema: String,
}

fn read(file: &Path) -> Result<HostFacts, Failure> {
    let argument = "--facts <FILE>";
    let text =
        fs::read_to_string(file).map_err(|error| Failure::unreadable(argument, file, &error))?;
    let invalid = |reason: String| Failure::value(argument, file.display(), reason);
    let not_facts = |error| invalid(format!("{error}; expected {FACTS_SCHEMA}"));
    let FileHeader { schema } = serde_json::from_str(&text).map_err(not_facts)?;
    if schema != FACTS_SCHEMA {
        return Err(invalid(format!("schema is {schema}, expected {FACTS_SCHEMA}")));
    }
    serde_json::from_str(&text).map_err(not_facts)
}

fn save(file: &Path, facts: &HostFacts) -> Result<(), Failure> {
    fs::write(file, print::json(facts)?).map_err(|error| {
        Failure::Environment(format!(
            "cannot write '{}' of '--save-facts <FILE>': {error}",
            file.display()
        ))
    })
}
