//! `uncork kernel`: the library's controllers in this machine's kernel.

mod args;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;
use uncork_diag::{Diag, DiagError, Query, TcpState};
use uncork_host::{RenewedDefaults, renew_defaults};
use uncork_kernel::{
    Algorithm, DIRECTORY, Error, Loaded, Pins, available, default, fall_back, probe, set_default,
};

use crate::args::TextFormat;
use crate::failure::Failure;
use crate::json::pretty;
use crate::stdout;
pub(crate) use args::KernelArgs;
use args::KernelCommand;

const SCHEMA: &str = "uncork.kernel/1";

pub(crate) fn kernel(args: &KernelArgs) -> Result<(), Failure> {
    let pins = Pins::in_directory(DIRECTORY);
    match &args.command {
        KernelCommand::List => list(),
        KernelCommand::Load { names, default } => load(&pins, names, *default),
        KernelCommand::Upgrade { names } => upgrade(&pins, names),
        KernelCommand::Unload { names } => unload(&pins, names),
        KernelCommand::Status { format } => status(&pins, *format),
    }
}

fn failure(error: Error) -> Failure {
    match error {
        Error::Loaded(_) | Error::NotLoaded(_) => Failure::Missed(error.to_string()),
        error => Failure::Environment(error.to_string()),
    }
}

fn list() -> Result<(), Failure> {
    let lines = Algorithm::ALL.map(|one| format!("{:<14}{}\n", one.name(), one.title()));
    stdout::write(lines.concat().as_bytes())
}

fn load(pins: &Pins, names: &[Algorithm], first_is_default: bool) -> Result<(), Failure> {
    for &algorithm in names {
        let load = || {
            pins.check_free(algorithm)?;
            pins.add(&Loaded::new(algorithm)?)
        };
        load().map_err(failure)?;
        stdout::write(format!("{algorithm} is loaded\n").as_bytes())?;
        // A namespace that has it as its default already has an old copy.
        renew(algorithm)?;
    }
    if let (true, Some(first)) = (first_is_default, names.first()) {
        set_default(first.name()).map_err(failure)?;
        stdout::write(format!("the default is {first}\n").as_bytes())?;
    }
    Ok(())
}

/// The controllers named, or all that are loaded.
fn chosen(pins: &Pins, names: &[Algorithm]) -> Result<Vec<Algorithm>, Failure> {
    if !names.is_empty() {
        return Ok(names.to_vec());
    }
    let loaded: Vec<_> = Algorithm::ALL.into_iter().filter(|one| pins.has(*one)).collect();
    if loaded.is_empty() { Err(Failure::Missed("none is loaded".to_owned())) } else { Ok(loaded) }
}

fn upgrade(pins: &Pins, names: &[Algorithm]) -> Result<(), Failure> {
    for algorithm in chosen(pins, names)? {
        let upgrade = || pins.replace(&Loaded::new(algorithm)?);
        upgrade().map_err(failure)?;
        stdout::write(format!("new connections get this program's {algorithm}\n").as_bytes())?;
        let RenewedDefaults { not_entered, hidden_processes, .. } = renew(algorithm)?;
        let consequence = format!(
            "where {algorithm} is the default, new connections get the old copy until it is set again; run `uncork kernel upgrade` as root"
        );
        for processes in not_entered {
            let processes = processes.join(", ");
            eprintln!(
                "warning: the network namespace of {processes} cannot be entered: {consequence}"
            );
        }
        if hidden_processes > 0 {
            eprintln!(
                "warning: the network namespaces of {hidden_processes} processes of other users cannot be seen: {consequence}"
            );
        }
    }
    Ok(())
}

/// Sets the default again in the namespaces where it is this controller: they keep the copy that was there when it was set.
fn renew(algorithm: Algorithm) -> Result<RenewedDefaults, Failure> {
    if default() == algorithm.name() {
        set_default(algorithm.name()).map_err(failure)?;
    }
    let done = renew_defaults(algorithm.name());
    for processes in &done.renewed {
        let processes = processes.join(", ");
        let text = format!("the network namespace of {processes} has it as its default\n");
        stdout::write(text.as_bytes())?;
    }
    Ok(done)
}

fn unload(pins: &Pins, names: &[Algorithm]) -> Result<(), Failure> {
    for algorithm in chosen(pins, names)? {
        // The default first: new connections are never without a controller.
        if pins.has(algorithm) && default() == algorithm.name() {
            let other = fall_back().map_err(failure)?;
            stdout::write(format!("the default is {other}, no longer {algorithm}\n").as_bytes())?;
        }
        let users = connections_by_controller().unwrap_or_default();
        pins.remove(algorithm).map_err(failure)?;
        let text = match users.get(algorithm.name()) {
            Some(n) => format!("{algorithm} is unloaded; {n} connections keep it until they end\n"),
            None => format!("{algorithm} is unloaded\n"),
        };
        stdout::write(text.as_bytes())?;
    }
    Ok(())
}

/// How many connections of this network namespace have which controller.
fn connections_by_controller() -> Result<BTreeMap<String, u64>, DiagError> {
    let mut users = BTreeMap::new();
    Diag::open()?.dump(&Query::default(), |connection| {
        // A listener is no connection, but has a controller, too.
        if let (Some(cc), true) = (connection.cc, connection.state != TcpState::Listen) {
            *users.entry(cc.as_str().to_owned()).or_default() += 1;
        }
    })?;
    Ok(users)
}

/// What `status` shows.
#[derive(Serialize)]
struct Status {
    schema: &'static str,
    /// Why nothing can be loaded; `None` if it can.
    missing: Option<String>,
    controllers: Vec<ControllerStatus>,
}

#[derive(Serialize)]
struct ControllerStatus {
    name: &'static str,
    loaded: bool,
    default: bool,
    connections: u64,
}

fn status(pins: &Pins, format: TextFormat) -> Result<(), Failure> {
    let users = connections_by_controller()
        .map_err(|error| Failure::Environment(format!("connections cannot be listed: {error}")))?;
    let (default, available) = (default(), available());
    let controllers = Algorithm::ALL.map(|one| ControllerStatus {
        name: one.name(),
        loaded: available.iter().any(|name| name == one.name()),
        default: default == one.name(),
        connections: users.get(one.name()).copied().unwrap_or(0),
    });
    let missing = probe(pins).err();
    let status = Status {
        schema: SCHEMA,
        missing: missing.as_ref().map(Error::to_string),
        controllers: controllers.into(),
    };
    let text = match format {
        TextFormat::Json => pretty(&status)?,
        TextFormat::Human => table(&status.controllers) + "\n",
    };
    stdout::write(text.as_bytes())?;
    missing.map_or(Ok(()), |missing| Err(failure(missing)))
}

fn table(controllers: &[ControllerStatus]) -> String {
    let mut text = format!("{:<14}{:<8}{:<9}connections", "name", "loaded", "default");
    for one in controllers {
        let word = |is: bool| if is { "yes" } else { "no" };
        let (loaded, default) = (word(one.loaded), word(one.default));
        // Writing into a string cannot fail.
        let _ = write!(text, "\n{:<14}{loaded:<8}{default:<9}{}", one.name, one.connections);
    }
    text
}
