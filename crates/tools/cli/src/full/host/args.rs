//! The arguments of `uncork host`.

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};

#[cfg(target_os = "linux")]
use super::prove_args::{self, ProveArgs};
#[cfg(target_os = "linux")]
use super::watch_args::{self, WatchArgs};
use crate::values::TextFormat;

const EXAMPLES: &str = "\
Examples:
  uncork host doctor
  sudo uncork host apply host.toml --ttl 10min
  sudo uncork host watch
  sudo uncork host prove cubic bbr -o bbr-test";

const DOCTOR_EXAMPLES: &str = "\
Examples:
  uncork host doctor
  uncork host doctor --expect bbr --notes
  sudo uncork host doctor                       # containers' namespaces, too
  uncork host doctor --format json | jq '.findings[].id'
  uncork host doctor --save-facts web1.json     # diagnose it elsewhere:
  uncork host doctor --facts web1.json";

const DOCTOR_AFTER: &str = "\
It changes nothing and needs no privileges. Root also sees other network namespaces. It opens one connection over loopback, \
to see which BBR the kernel has. Saved facts contain the addresses of the host's connections.

Exit status: 0 nothing needs to be done, 1 something does, 2 wrong usage, 3 the host cannot be read, 5 a bug.";

/// Look after the congestion control of this host (docs/reference/host.md)
#[derive(Args, Debug)]
#[command(before_help = EXAMPLES)]
pub(crate) struct HostArgs {
    #[command(subcommand)]
    pub(super) command: HostCommand,
}

#[derive(Debug, Subcommand)]
pub(super) enum HostCommand {
    /// Find what keeps this host from running the algorithm that it should
    #[command(before_help = DOCTOR_EXAMPLES, after_help = DOCTOR_AFTER)]
    Doctor(DoctorArgs),
    #[cfg(target_os = "linux")]
    #[command(flatten)]
    Change(super::change_args::ChangeCommand),
    /// Show the connections of this host: what they do, and what limits them
    #[cfg(target_os = "linux")]
    #[command(before_help = watch_args::EXAMPLES, after_help = watch_args::AFTER)]
    Watch(WatchArgs),
    /// Measure what another controller is worth on this host, and leave it as before
    #[cfg(target_os = "linux")]
    #[command(before_help = prove_args::EXAMPLES, after_help = prove_args::AFTER)]
    Prove(ProveArgs),
}

#[derive(Args, Debug)]
pub(super) struct DoctorArgs {
    /// Algorithm that new connections should run; default: the host's own default
    #[arg(long, alias = "want", value_name = "ALGORITHM")]
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub(super) expect: Option<String>,
    /// Also print what is good to know
    #[arg(long)]
    pub(super) notes: bool,
    /// Output format
    #[arg(long, default_value = "human")]
    pub(super) format: TextFormat,
    /// Diagnose a host from saved facts
    #[arg(long, value_name = "FILE", conflicts_with = "save_facts")]
    pub(super) facts: Option<PathBuf>,
    /// Save the facts about this host as JSON
    #[arg(long, value_name = "FILE")]
    pub(super) save_facts: Option<PathBuf>,
}
