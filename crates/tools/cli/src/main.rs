//! The command `uncork`.
//!
//! stdout carries data only; progress and notes go to stderr. Exit status: 0 done, 1 a threshold is missed,
//! 2 wrong usage, 3 not possible on this machine, 5 a bug, 130 interrupted. `uncork emu` ends with the status
//! of the command that it ran.
//!
//! `command.rs` lists the commands. Each has a folder: `args.rs` declares its arguments with their help, `run.rs` has
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
mod emu;
mod exit;
mod external;
mod failure;
mod forecast;
mod host;
mod interrupt;
#[cfg(target_os = "linux")]
mod kernel;
mod lab;
mod manual;
mod open_files;
mod output;
#[cfg(target_os = "linux")]
mod play;
mod policy;
mod print;
mod progress;
#[cfg(test)]
mod reference;
mod serve;
#[cfg(target_os = "linux")]
mod status;
mod stdout;
#[cfg(target_os = "linux")]
mod steer;
mod values;

use std::process::ExitCode;

use clap::FromArgMatches;

use crate::command::{Cli, Command, definition};
use crate::failure::Failure;

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    exit::report_bugs();
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => exit::report(failure),
    }
}

fn run() -> Result<(), Failure> {
    let matches = definition().try_get_matches().map_err(Failure::Clap)?;
    let cli = Cli::from_arg_matches(&matches).map_err(Failure::Clap)?;
    match (cli.command, matches.subcommand()) {
        (Some(Command::Compare(args)), Some((_, matches))) => compare::run(&args, matches),
        (Some(Command::Lab(args)), _) => lab::run(&args),
        (Some(Command::Emu(args)), Some((_, matches))) => emu::run(&args, matches),
        #[cfg(target_os = "linux")]
        (Some(Command::Play(args)), _) => play::run(&args),
        (Some(Command::Host(args)), _) => host::run(&args),
        #[cfg(target_os = "linux")]
        (Some(Command::Kernel(args)), _) => kernel::run(&args),
        #[cfg(target_os = "linux")]
        (Some(Command::Steer(args)), _) => steer::run(&args),
        #[cfg(target_os = "linux")]
        (Some(Command::Status(args)), _) => status::run(&args),
        (Some(Command::Policy(args)), _) => policy::run(&args),
        (Some(Command::Serve(args)), Some((_, matches))) => serve::run(&args, matches),
        (Some(Command::Experiment { arguments }), _) => external::run("experiment", &arguments),
        (Some(Command::Learn { arguments }), _) => external::run("learn", &arguments),
        (Some(Command::Completions { shell }), _) => manual::completions(shell),
        (Some(Command::Man { command }), _) => manual::man(&command),
        _ => stdout::write(definition().render_help().to_string().as_bytes()),
    }
}
