//! What the feature `full` adds to the laboratory in simulation: the commands for emulated paths, hosts, kernels and servers, and
//! what of `uncork lab` reads or makes the records of a server. `left_out.rs` names all of it in a build without the feature.

#[cfg(target_os = "linux")]
mod agent;
#[cfg(target_os = "linux")]
mod command_line;
mod emu;
mod file;
#[cfg(target_os = "linux")]
mod fleet;
mod host;
#[cfg(target_os = "linux")]
mod kernel;
pub(crate) mod lab;
mod merge;
#[cfg(target_os = "linux")]
mod nap;
mod open_files;
#[cfg(target_os = "linux")]
mod play;
mod policy;
mod records;
mod rollup;
mod rollup_args;
mod serve;
#[cfg(target_os = "linux")]
mod ship;
#[cfg(target_os = "linux")]
mod status;
#[cfg(target_os = "linux")]
mod steer;
#[cfg(target_os = "linux")]
mod store;
#[cfg(target_os = "linux")]
mod ttl;
mod unix_time;

use clap::{ArgMatches, Subcommand};

use crate::failure::Failure;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a command behind an emulated path, in real time
    Emu(Box<emu::EmuArgs>),
    Policy(policy::PolicyArgs),
    /// Serve files over HTTP with the congestion control that you choose
    Serve(Box<serve::ServeArgs>),
    Records(rollup::RecordsArgs),
    #[cfg(target_os = "linux")]
    Play(play::PlayArgs),
    Host(host::HostArgs),
    #[cfg(target_os = "linux")]
    Kernel(kernel::KernelArgs),
    #[cfg(target_os = "linux")]
    Steer(steer::SteerArgs),
    #[cfg(target_os = "linux")]
    Agent(Box<agent::AgentArgs>),
    #[cfg(target_os = "linux")]
    Fleet(fleet::FleetArgs),
    #[cfg(target_os = "linux")]
    Status(status::StatusArgs),
}

/// `matches` are of the command.
pub(crate) fn run(command: &Command, matches: &ArgMatches) -> Result<(), Failure> {
    match command {
        Command::Emu(args) => emu::run(args, matches),
        Command::Policy(args) => policy::run(args),
        Command::Serve(args) => serve::run(args, matches),
        Command::Records(args) => rollup::run(args),
        #[cfg(target_os = "linux")]
        Command::Play(args) => play::run(args),
        Command::Host(args) => host::run(args),
        #[cfg(target_os = "linux")]
        Command::Kernel(args) => kernel::run(args),
        #[cfg(target_os = "linux")]
        Command::Steer(args) => steer::run(args),
        #[cfg(target_os = "linux")]
        Command::Agent(args) => agent::run(args),
        #[cfg(target_os = "linux")]
        Command::Fleet(args) => fleet::run(args),
        #[cfg(target_os = "linux")]
        Command::Status(args) => status::run(args),
    }
}
