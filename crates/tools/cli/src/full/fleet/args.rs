//! The arguments of `uncork fleet`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use uncork_fleet::{HostName, Stage, Tolerance};
use uncork_units::TimeDelta;

use crate::values::TextFormat;

const KEYGEN_EXAMPLES: &str = "\
Examples:
  uncork fleet keygen fleet.key";

const PUBLISH_EXAMPLES: &str = "\
Examples:
  uncork fleet publish /srv/fleet policy.toml --key fleet.key
  uncork fleet publish s3://policies/fleet policy.toml --key fleet.key
  uncork fleet publish /srv/fleet policy.toml --key fleet.key --stages place:fra1,10%,100% --hold 2h
  uncork fleet publish /srv/fleet --key fleet.key --stop-if verdict.json --rollback
  uncork fleet publish /srv/fleet off.toml --key fleet.key --at-once
  uncork fleet publish /srv/fleet learned/current/policy.toml --key fleet.key --holder planner1";

const PUBLISH_AFTER: &str = "\
With a policy, it begins: the hosts of the first stage get the version at their next poll. Without one, it takes the next step of the \
version that goes out: the next stage, or all hosts have it. A stage goes on when it was held for --hold, its hosts run the version, \
and each --stop-if says so. Run that every minute, by a timer: uncork-fleet.timer.

A share without a host that has reported becomes the smallest share with one, and is held again. Without any report, the version \
waits.

A policy with the same files as the stable version goes to all hosts at once: it only lasts longer. With --at-once any policy does, \
and replaces a version that goes out.

With --holder, a planner publishes (docs/reference/fleet.md#planners). It needs the lease, and replaces a version that goes out only with --at-once. If the fleet has the same files, nothing is published before half of their life is over. After a rollback, first publish once without --holder, or use --at-once.

Exit status: 0 published, or the stage has to wait, 1 the version must not go on, or cannot be published now, 2 wrong usage or an invalid policy, 3 the store cannot be read or \
written, 5 a bug.";

const LEASE_EXAMPLES: &str = "\
Examples:
  uncork fleet lease /srv/fleet --holder planner1 --for 3h
  uncork fleet lease /srv/fleet --holder planner1 --release
  uncork fleet lease /srv/fleet";

const LEASE_AFTER: &str = "\
Without --holder, it shows who holds the lease. With it, it takes the lease, or renews it.

Exit status: 0 done, 1 another planner holds the lease, 2 wrong usage, 3 the store cannot be read or written, 5 a bug.";

const PLAN_EXAMPLES: &str = "\
Examples:
  uncork fleet plan /srv/fleet --public-key fleet.pub
  uncork fleet plan /srv/fleet --public-key fleet.pub --stages 1%,10%,100%";

const STATUS_EXAMPLES: &str = "\
Examples:
  uncork fleet status /srv/fleet --public-key fleet.pub
  uncork fleet status /srv/fleet --public-key fleet.pub --format json | jq .versions
  uncork fleet status /srv/fleet --public-key fleet.pub --metrics /run/uncork-fleet/fleet.prom";

const STATUS_AFTER: &str = "\
Exit status: 0 as it should be, 1 something needs attention (such as a host that cannot activate its version), 2 wrong usage, 3 the \
store cannot be read, 5 a bug.";

const ROLL_BACK_EXAMPLES: &str = "\
Examples:
  uncork fleet rollback /srv/fleet --key fleet.key
  uncork fleet rollback /srv/fleet 12 --key fleet.key  # to version 12";

const FREEZE_EXAMPLES: &str = "\
Examples:
  uncork fleet freeze /srv/fleet --key fleet.key
  uncork fleet freeze /srv/fleet --key fleet.key --off";

const EXAMPLES: &str = "\
Examples:
  uncork fleet keygen fleet.key
  uncork fleet publish /srv/fleet policy.toml --key fleet.key
  uncork fleet status /srv/fleet --public-key fleet.key.pub
  uncork fleet rollback /srv/fleet --key fleet.key";

const ROLL_BACK_AFTER: &str = "\
Hosts return at their next poll: from a version that goes out to the stable one, otherwise from the stable one to the one before, or to \
VERSION. It needs no stage, and ends a freeze. Agents refuse an older version without it.

Exit status: 0 published, 1 all hosts run their default already, 2 wrong usage, 3 the store cannot be read or written, or has no \
valid version, 5 a bug.";

/// Roll policies out to many hosts: signed versions in a store, in stages (docs/reference/fleet.md)
#[derive(Args, Debug)]
#[command(before_help = EXAMPLES)]
pub(crate) struct FleetArgs {
    #[command(subcommand)]
    pub(super) command: FleetCommand,
}

#[derive(Debug, Subcommand)]
pub(super) enum FleetCommand {
    /// Make a key pair: FILE, and the public key in FILE.pub
    #[command(before_help = KEYGEN_EXAMPLES)]
    Keygen {
        /// File of the private key, which must not exist
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Show which hosts each stage has, and what `publish` would do next
    #[command(before_help = PLAN_EXAMPLES)]
    Plan {
        #[command(flatten)]
        store: ReadArgs,
        /// Stages of a version that does not go out yet
        #[arg(
            long,
            value_name = "STAGE,…",
            value_delimiter = ',',
            default_value = "1%,10%,50%,100%"
        )]
        stages: Vec<Stage>,
        #[command(flatten)]
        stop: StopArgs,
    },
    /// Publish a policy as a new version, or take the next step of the version that goes out
    #[command(before_help = PUBLISH_EXAMPLES, after_help = PUBLISH_AFTER)]
    Publish(Box<PublishArgs>),
    /// Take the lease for a planner: only its holder publishes with --holder
    #[command(before_help = LEASE_EXAMPLES, after_help = LEASE_AFTER)]
    Lease(LeaseArgs),
    /// Show which hosts run which version, and what needs attention
    #[command(before_help = STATUS_EXAMPLES, after_help = STATUS_AFTER)]
    Status {
        #[command(flatten)]
        store: ReadArgs,
        /// Output format
        #[arg(long, default_value = "human")]
        format: TextFormat,
        /// Write metrics to a file that node_exporter reads
        #[arg(long, value_name = "FILE")]
        metrics: Option<PathBuf>,
    },
    /// Have all hosts return to the version before, at their next poll
    #[command(before_help = ROLL_BACK_EXAMPLES, after_help = ROLL_BACK_AFTER)]
    Rollback {
        #[command(flatten)]
        store: WriteArgs,
        /// Version to return to [default: the stable one, or the one before]
        #[arg(value_name = "VERSION")]
        version: Option<u64>,
    },
    /// Have all hosts stay where they are
    #[command(before_help = FREEZE_EXAMPLES)]
    Freeze {
        #[command(flatten)]
        store: WriteArgs,
        /// End the freeze
        #[arg(long)]
        off: bool,
    },
}

#[derive(Args, Debug)]
pub(super) struct ReadArgs {
    /// Store: a directory, or s3://, gs:// or az://BUCKET/PREFIX
    #[arg(value_name = "STORE")]
    pub(super) store: String,
    /// Public key of the publisher; repeat for several
    #[arg(long, value_name = "FILE", required = true)]
    pub(super) public_key: Vec<PathBuf>,
}

#[derive(Args, Debug)]
pub(super) struct WriteArgs {
    /// Store: a directory, or s3://, gs:// or az://BUCKET/PREFIX
    #[arg(value_name = "STORE")]
    pub(super) store: String,
    /// Private key (Ed25519, PEM), as `uncork fleet keygen` makes it
    #[arg(long, value_name = "FILE")]
    pub(super) key: PathBuf,
    /// Public key of another publisher, such as the one before a rotation; repeat for several
    #[arg(long, value_name = "FILE")]
    pub(super) public_key: Vec<PathBuf>,
}

#[derive(Args, Debug)]
pub(super) struct LeaseArgs {
    /// Store: a directory
    #[arg(value_name = "STORE")]
    pub(super) store: String,
    /// Name of the planner
    #[arg(long, value_name = "NAME")]
    pub(super) holder: Option<HostName>,
    /// Time after which another planner may take it
    #[arg(long = "for", value_name = "TIME", default_value = "3h", requires = "holder")]
    pub(super) time: TimeDelta,
    /// End the lease
    #[arg(long, requires = "holder", conflicts_with = "time")]
    pub(super) release: bool,
}

#[derive(Args, Debug)]
pub(super) struct StopArgs {
    /// Verdict on the version (docs/reference/fleet.md#verdicts); repeat for several
    #[arg(long, value_name = "FILE.json")]
    pub(super) stop_if: Vec<PathBuf>,
    /// Hosts of a stage that may fail to activate the version
    #[arg(long, value_name = "N", default_value_t = 0)]
    max_failed: usize,
    /// Skip the time of stages without hosts, and do not widen them
    #[arg(long)]
    skip_empty: bool,
}

impl StopArgs {
    pub(super) fn tolerance(&self) -> Tolerance {
        Tolerance { max_failed: self.max_failed, skip_empty: self.skip_empty }
    }
}

#[derive(Args, Debug)]
pub(super) struct PublishArgs {
    #[command(flatten)]
    pub(super) store: WriteArgs,
    /// Policy file; its table and signature are taken from its directory
    #[arg(value_name = "POLICY")]
    pub(super) policy: Option<PathBuf>,
    /// Stages: shares of the hosts, or places; the last one is 100%
    #[arg(
        long,
        value_name = "STAGE,…",
        value_delimiter = ',',
        default_value = "1%,10%,50%,100%",
        requires = "policy"
    )]
    pub(super) stages: Vec<Stage>,
    /// Minimum time of a stage
    #[arg(long, value_name = "TIME", default_value = "1h", requires = "policy")]
    pub(super) hold: TimeDelta,
    /// Go to all hosts at once, in place of a version that goes out
    #[arg(long, requires = "policy", conflicts_with_all = ["stages", "hold"])]
    pub(super) at_once: bool,
    /// Time after which hosts return to their default (at least 1h)
    #[arg(long, value_name = "TIME", default_value = "7d", requires = "policy")]
    pub(super) expires: TimeDelta,
    /// Planner that publishes, and holds the lease
    #[arg(long, value_name = "NAME", requires = "policy")]
    pub(super) holder: Option<HostName>,
    #[command(flatten)]
    pub(super) stop: StopArgs,
    /// Roll the version back if it must not go on
    #[arg(long, alias = "roll-back", conflicts_with = "policy")]
    pub(super) rollback: bool,
}
