//! The command `uncork`.
//!
//! stdout carries data only; progress and notes go to stderr. Exit status: 0 done, 1 a threshold is missed,
//! 2 wrong usage, 3 not possible on this machine, 5 a bug, 130 interrupted. `uncork emu` ends with the status
//! of the command that it ran.
#![forbid(unsafe_code)]
// stdout.rs and stderr.rs write: without control characters of names, and without a panic where no one reads.
#![deny(clippy::print_stdout, clippy::print_stderr)]

#[macro_use]
mod stderr;

mod args;
mod clock;
mod color;
mod compare;
mod emu;
mod external;
mod failure;
mod forecast;
mod host;
mod json;
#[cfg(target_os = "linux")]
mod kernel;
mod lab;
#[cfg(target_os = "linux")]
mod lost_records;
mod manual;
mod open_files;
mod output;
#[cfg(target_os = "linux")]
mod play;
mod policy;
mod progress;
#[cfg(test)]
mod reference;
mod serve;
#[cfg(target_os = "linux")]
mod status;
mod stdout;
#[cfg(target_os = "linux")]
mod steer;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

use crate::args::{Cli, Command};
use crate::failure::Failure;

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// First the purpose, then examples.
const HELP: &str = "\
{about-with-newline}
{before-help}{usage-heading} {usage}

{all-args}{after-help}";

/// Maximum width of the help: longer lines are hard to read.
const COLUMNS: usize = 100;

/// The command line.
fn definition() -> clap::Command {
    fn with_template(command: clap::Command) -> clap::Command {
        command.help_template(HELP).mut_subcommands(with_template)
    }
    with_template(Cli::command()).max_term_width(COLUMNS)
}

fn main() -> ExitCode {
    failure::report_bugs();
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn run() -> Result<(), Failure> {
    let matches = definition().try_get_matches().map_err(Failure::Clap)?;
    let cli = Cli::from_arg_matches(&matches).map_err(Failure::Clap)?;
    match (cli.command, matches.subcommand()) {
        (Some(Command::Compare(args)), Some((_, matches))) => compare::compare(&args, matches),
        (Some(Command::Lab(args)), _) => lab::lab(&args),
        (Some(Command::Emu(args)), Some((_, matches))) => emu::emu(&args, matches),
        #[cfg(target_os = "linux")]
        (Some(Command::Play(args)), _) => play::play(&args),
        (Some(Command::Host(args)), _) => host::host(&args),
        #[cfg(target_os = "linux")]
        (Some(Command::Kernel(args)), _) => kernel::kernel(&args),
        #[cfg(target_os = "linux")]
        (Some(Command::Steer(args)), _) => steer::steer(&args),
        #[cfg(target_os = "linux")]
        (Some(Command::Status(args)), _) => status::status(&args),
        (Some(Command::Policy(args)), _) => policy::policy(&args),
        (Some(Command::Serve(args)), Some((_, matches))) => serve::serve(&args, matches),
        (Some(Command::Experiment { arguments }), _) => {
            external::run("uncork-experiment", &arguments)
        }
        (Some(Command::Learn { arguments }), _) => external::run("uncork-learn", &arguments),
        (Some(Command::Completions { shell }), _) => manual::completions(shell),
        (Some(Command::Man { command }), _) => manual::man(&command),
        _ => stdout::write(definition().render_help().to_string().as_bytes()),
    }
}
