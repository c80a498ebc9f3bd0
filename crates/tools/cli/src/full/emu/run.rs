//! Runs commands behind a path, or keeps the path up for others.

use std::fmt::Write;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};

use clap::ArgMatches;
use serde::Serialize;
use uncork_emu::{
    EmuError, Emulation, EmulationDocument, HostDocument, Names, ProcessGroup, Report, ServerState,
    clean_up,
};

use super::args::{EmuArgs, EmuFormat};
use super::specification::{Specification, specification};
use super::wait::Signals;
use crate::failure::Failure;
use crate::full::command_line::command_line;
use crate::{output, print, stdout};

const FILES: [&str; 1] = ["summary.json"];
/// Exit status of a command that cannot be started, as in a shell.
const NOT_STARTED: u8 = 127;

pub(crate) fn run(args: &EmuArgs, matches: &ArgMatches) -> Result<(), Failure> {
    if args.cleanup {
        return cleanup();
    }
    args.check(matches)?;
    let Specification { spec, classes } = specification(args)?;
    if let Some(directory) = &args.output {
        output::probe(directory, &FILES).map_err(|error| Failure::output(directory, &error))?;
    }
    let signals = Signals::catch().map_err(|error| system("listen for signals", &error))?;
    let emulation = Emulation::start(&spec).map_err(|error| refused(&error))?;
    note(args, &emulation);
    let server = args.server.as_ref();
    let server = server.map(|server| start_server(args, &emulation, &signals, server));
    let server = server.transpose()?;
    let ended = if args.is_up() {
        keep(args, &emulation, &classes, &signals).map(|()| None)
    } else {
        run_command(args, &emulation, &signals).map(Some)
    };
    let server = server.map_or(Ok(()), |server| server.end().map(drop));
    let status = ended?;
    server.map_err(|error| system("end the command of '--server'", &error))?;
    let report = emulation.stop().map_err(|error| refused(&error))?;
    finish(args, report, status)?;
    match status {
        None | Some(0) => Ok(()),
        Some(status) => Err(Failure::Status(status)),
    }
}

fn cleanup() -> Result<(), Failure> {
    let found = clean_up().map_err(|error| system("remove what was left", &error))?;
    let mut text = String::new();
    for name in &found.names {
        let _ = writeln!(text, "removed {}", name.display());
    }
    for process in &found.processes {
        let _ = writeln!(text, "killed process {process}");
    }
    stdout::write(text.as_bytes())
}

/// Starts `command` on the far side and waits until it listens or exits.
fn start_server(
    args: &EmuArgs,
    emulation: &Emulation,
    signals: &Signals,
    command: &str,
) -> Result<ProcessGroup, Failure> {
    let mut shell = emulation.server_command(0, "sh").map_err(|error| no_start(&error))?;
    // A server's output must not mix with COMMAND's output.
    shell.arg("-c").arg(command).stdin(Stdio::null()).stdout(io::stderr());
    let served = ProcessGroup::serve(emulation.server(), &mut shell, || signals.have_come());
    let (job, service) = served.map_err(|error| no_start(&error))?;
    if signals.have_come() {
        let message = "before the command of '--server' listened".to_owned();
        return Err(Failure::Interrupted(message));
    }
    let remark = match service {
        ServerState::Listening => return Ok(job),
        ServerState::Exited(status) if !status.success() => {
            let message = format!("the command of '--server' ended before it listened: {status}");
            return Err(Failure::Environment(message));
        }
        ServerState::Exited(_) => "has ended, and nothing listens".to_owned(),
        ServerState::TimedOut(waited) => format!("does not listen after {} s", waited.as_secs()),
    };
    if !args.quiet {
        eprintln!("note: the command of '--server' {remark}");
    }
    Ok(job)
}

fn no_start(error: &io::Error) -> Failure {
    system("start the command of '--server'", error)
}

/// Runs COMMAND on the near side and returns its status.
fn run_command(args: &EmuArgs, emulation: &Emulation, signals: &Signals) -> Result<u8, Failure> {
    let Some((program, arguments)) = args.command.split_first() else { return Ok(0) };
    let command = emulation.client_command(0, program);
    let started = command.and_then(|mut command| command.args(arguments).spawn());
    let mut child = match started {
        Ok(child) => child,
        Err(error) => {
            eprintln!("error: cannot start {}: {error}", program.display());
            return Ok(NOT_STARTED);
        }
    };
    let ended = signals.wait_for(&mut child, emulation);
    ended.map(code).map_err(|error| system("wait for the command", &error))
}

/// The exit code as in shells.
fn code(status: ExitStatus) -> u8 {
    match (status.code(), status.signal()) {
        (Some(code), _) => code as u8,
        (None, Some(signal)) => 128_u8.saturating_add(signal as u8),
        (None, None) => 0,
    }
}

/// Prints the hosts and keeps them until a signal arrives. Hosts represent clients of `classes`.
fn keep(
    args: &EmuArgs,
    emulation: &Emulation,
    classes: &[Vec<String>],
    signals: &Signals,
) -> Result<(), Failure> {
    let names = Names::give(emulation, "");
    let names = names.map_err(|error| system("give the namespaces names in /run/netns", &error))?;
    let hosts = HostDocument::all(emulation, names.all(), classes);
    let text = match args.format {
        EmuFormat::Json => json_line(&hosts)?,
        EmuFormat::Human => hosts.iter().map(HostDocument::text).collect(),
    };
    stdout::write(text.as_bytes())?;
    if !args.quiet {
        eprintln!("note: `ip netns exec NAME COMMAND` runs a command there; Ctrl-C ends it all");
    }
    signals.wait(emulation);
    Ok(())
}

/// Prints the addresses of the hosts, and missing features.
fn note(args: &EmuArgs, emulation: &Emulation) {
    if args.quiet {
        return;
    }
    if !args.is_up() {
        let far = emulation.server().addresses();
        let v6 = far.v6.map_or(String::new(), |v6| format!(", {v6}"));
        eprintln!("note: the far side is {}{v6}", far.v4);
    }
    if emulation.server().addresses().v6.is_none() {
        eprintln!("note: this kernel has no IPv6: the path carries IPv4 only");
    }
}

fn finish(args: &EmuArgs, report: Report, status: Option<u8>) -> Result<(), Failure> {
    if !args.quiet {
        eprintln!("{}", report.text().trim_end());
    }
    let document = EmulationDocument { command: command_line(), status, report };
    if let Some(directory) = &args.output {
        let files = [(FILES[0], print::json(&document)?.into_bytes())];
        output::write(directory, &files).map_err(|error| Failure::output(directory, &error))?;
    }
    match args.format {
        EmuFormat::Human => Ok(()),
        EmuFormat::Json => stdout::write(print::json(&document)?.as_bytes()),
    }
}

fn refused(error: &EmuError) -> Failure {
    Failure::Environment(error.to_string())
}

fn system(action: &str, error: &io::Error) -> Failure {
    Failure::Environment(format!("cannot {action}: {error}"))
}

/// `document` on one line.
fn json_line(document: &impl Serialize) -> Result<String, Failure> {
    let json = serde_json::to_string(document);
    json.map(|text| text + "\n").map_err(|error| Failure::Environment(error.to_string()))
}
