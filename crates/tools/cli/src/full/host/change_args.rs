//! The arguments of the commands that change a host.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use uncork_units::TimeDelta;

use crate::full::ttl::ttl;
use crate::values::{Color, TextFormat};

const PLAN_EXAMPLES: &str = "\
Examples:
  uncork host plan host.toml
  uncork host plan host.toml --format json | jq -r '.changes[].commands[]'";

const PLAN_AFTER: &str = "\
It changes nothing, and needs no privileges but to look into [namespaces].

Exit status: 0 nothing needs to be done, 1 something does, 2 wrong usage or file, 3 this host cannot reach the desired state, 5 a bug.";

const APPLY_EXAMPLES: &str = "\
Examples:
  sudo uncork host apply host.toml
  sudo uncork host apply host.toml --ttl 10min  # rolled back after 10 min unless you run:
  sudo uncork host confirm
  sudo uncork host status
  sudo uncork host revert";

const APPLY_AFTER: &str = "\
All changes are made or none. They need CAP_NET_ADMIN, and the rights to write --state-dir and, with `persist`, the \
files in /etc. If this command dies, a process that it started before undoes what it had changed; that process also \
undoes changes without confirmation. With --ttl, files are written by `confirm`: until then a reboot brings back the \
old state, too.

The policy of [routes] is read again by each `apply`. If it is refused, nothing is changed; but if the table of the \
active routes has expired, or after a reboot, all else is applied without it.

Exit status: 0 done or nothing to do, 1 another change waits for `confirm`, or it was applied without its policy, 2 wrong usage or file, 3 impossible here; \
nothing was changed, 5 a bug.";

const CONFIRM_EXAMPLES: &str = "\
Example:
  sudo uncork host confirm";

const CONFIRM_AFTER: &str = "\
Exit status: 0 kept, also if they were kept before, 1 nothing is applied or the changes were rolled back, 3 a file cannot be written, 5 a bug.";

const REVERT_EXAMPLES: &str = "\
Examples:
  sudo uncork host revert
  sudo uncork host revert --forget  # the journal is damaged: keep all settings as they are";

const REVERT_AFTER: &str = "\
It restores each setting as it was before the first `apply`. It leaves a setting that somebody else has changed since, \
and loaded kernel modules. The host is restored on a full or read-only disk, too; a warning says if the journal could not be \
written.

With --forget nothing is restored. The old journal is kept as JOURNAL.forgotten.

Exit status: 0 restored, or nothing was applied, 1 settings of somebody else were left, 3 impossible: the message names what was not restored; run it again, 5 a bug.";

const STATUS_EXAMPLES: &str = "\
Examples:
  uncork host status
  uncork host status --format json | jq '.settings[] | select(.changed)'";

const STATUS_AFTER: &str = "\
It changes no setting and needs no privileges but to read --state-dir. If the process that undoes unconfirmed changes is dead, it \
says so, and starts another one if it runs as root.

Exit status: 0 as applied, 1 a setting was changed since, changes are unfinished, or the process that undoes them was dead, 3 the host cannot be read, 5 a bug.";

#[derive(Debug, Subcommand)]
pub(crate) enum ChangeCommand {
    /// Compare this host with the desired state, and print the commands that change it
    #[command(before_help = PLAN_EXAMPLES, after_help = PLAN_AFTER)]
    Plan(PlanArgs),
    /// Change this host to the desired state: all changes, or none
    #[command(before_help = APPLY_EXAMPLES, after_help = APPLY_AFTER)]
    Apply(ApplyArgs),
    /// Keep what `apply --ttl` has changed
    #[command(before_help = CONFIRM_EXAMPLES, after_help = CONFIRM_AFTER)]
    Confirm(StateArgs),
    /// Restore what was there before `apply`
    #[command(before_help = REVERT_EXAMPLES, after_help = REVERT_AFTER)]
    Revert(RevertArgs),
    /// Show what is applied, and what has changed since
    #[command(before_help = STATUS_EXAMPLES, after_help = STATUS_AFTER)]
    Status(HostStatusArgs),
    /// Undo changes of dead commands, and changes without confirmation; `apply` starts it
    #[command(hide = true)]
    Guard(GuardArgs),
}

#[derive(Args, Debug)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    pub(super) desired: DesiredStateArgs,
    /// Output format
    #[arg(long, default_value = "human")]
    pub(super) format: TextFormat,
    #[command(flatten)]
    pub(super) state: StateArgs,
}

#[derive(Args, Debug)]
pub(crate) struct ApplyArgs {
    /// The desired state (example: docs/reference/host.toml)
    #[arg(value_name = "FILE", required_unless_present = "boot")]
    pub(super) file: Option<PathBuf>,
    /// Undo the changes after this time, unless `uncork host confirm` is run before: 90s, 10min or 10m, 2h
    #[arg(long, value_name = "TIME", value_parser = ttl)]
    pub(super) ttl: Option<TimeDelta>,
    /// Apply the active state again, after a reboot or with its policy's current routes; for units of systemd
    #[arg(long, conflicts_with_all = ["file", "ttl"])]
    pub(super) boot: bool,
    /// Colours in messages
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub(super) color: Color,
    #[command(flatten)]
    pub(super) state: StateArgs,
}

#[derive(Args, Debug)]
pub(crate) struct RevertArgs {
    /// Restore nothing, and begin a new journal: if the old one is damaged, or its values no longer count
    #[arg(long)]
    pub(super) forget: bool,
    #[command(flatten)]
    pub(super) state: StateArgs,
}

#[derive(Args, Debug)]
pub(crate) struct GuardArgs {
    /// The name of the journal, by which `status` finds this process
    #[arg(long, value_name = "NAME")]
    pub(super) journal: Option<String>,
    #[command(flatten)]
    pub(super) state: StateArgs,
}

#[derive(Args, Debug)]
pub(crate) struct HostStatusArgs {
    /// Output format
    #[arg(long, default_value = "human")]
    pub(super) format: TextFormat,
    #[command(flatten)]
    pub(super) state: StateArgs,
}

#[derive(Args, Debug)]
pub(crate) struct DesiredStateArgs {
    /// The desired state (example: docs/reference/host.toml)
    #[arg(value_name = "FILE")]
    pub(super) file: PathBuf,
    /// Colours in messages
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub(super) color: Color,
}

#[derive(Args, Debug)]
pub(crate) struct StateArgs {
    /// Where the journal of changes is kept
    #[arg(long, value_name = "DIR", default_value = "/var/lib/uncork")]
    pub(super) state_dir: PathBuf,
    /// Where the paths of files in /etc begin
    #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
    pub(super) root: PathBuf,
}
