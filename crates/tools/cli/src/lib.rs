//! The command `uncork`.
//!
//! stdout carries data only; progress and notes go to stderr. Exit status: 0 done, 1 a threshold is missed,
//! 2 wrong usage, 3 not possible on this machine, 5 a bug, 130 interrupted. `uncork emu` ends with the status
//! of the command that it ran.
//!
//! `command.rs` lists the commands. Those of the feature `full` are in `full/`; `left_out.rs` names what a build without it lacks.
//! Each command has a folder: `args.rs` declares its arguments with their help, `run.rs` has
//! `run(args)`, and a subcommand of its own size has a file with its name and a `run`; `mod.rs` only declares and re-exports.
//! Values that arguments of several commands have are in `values/`. A command parses, calls a library, prints and writes:
//! the crate that owns a result has its `document` (JSON) and `text`, and `print.rs` prints one of them.
//! No module imports one that imports it.
#![forbid(unsafe_code)]
// stdout.rs and stderr.rs write: without control characters of names, and without a panic where no one reads.
#![deny(clippy::print_stdout, clippy::print_stderr)]

#[macro_use]
mod stderr;

mod clock;
mod color;
mod command;
mod compare;
mod exit;
mod external;
mod failure;
mod forecast;
#[cfg(feature = "full")]
mod full;
mod interrupt;
mod lab;
mod left_out;
mod manual;
mod output;
mod print;
mod progress;
#[cfg(test)]
mod reference;
mod scenario;
mod stdout;
mod values;

use std::process::ExitCode;

use clap::FromArgMatches;

use crate::command::{Cli, Command, definition};
use crate::failure::Failure;

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Runs the command that the arguments of this process name, and returns its exit status.
pub fn main() -> ExitCode {
    exit::report_bugs();
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => exit::report(failure),
    }
}

fn run() -> Result<(), Failure> {
    let matches = definition().try_get_matches().map_err(Failure::Clap)?;
    left_out::check(&matches)?;
    let cli = Cli::from_arg_matches(&matches).map_err(Failure::Clap)?;
    match (cli.command, matches.subcommand()) {
        (Some(Command::Compare(args)), Some((_, matches))) => compare::run(&args, matches),
        (Some(Command::Lab(args)), _) => lab::run(&args),
        #[cfg(feature = "full")]
        (Some(Command::Full(command)), Some((_, matches))) => full::run(&command, matches),
        (Some(Command::Experiment { arguments }), _) => external::run("experiment", &arguments),
        (Some(Command::Learn { arguments }), _) => external::run("learn", &arguments),
        (Some(Command::Completions { shell }), _) => manual::completions(shell),
        (Some(Command::Man { command }), _) => manual::man(&command),
        _ => stdout::write(definition().render_help().to_string().as_bytes()),
    }
}
