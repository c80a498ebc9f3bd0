//! The arguments of `uncork steer`.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use uncork_policy::{Prefix, UnixTime};
use uncork_units::TimeDelta;

use crate::full::rollup_args::RollupArgs;
use crate::full::ttl::ttl;
use crate::values::{Color, TextFormat};

const EXAMPLES: &str = "\
Examples:
  sudo uncork steer apply policy.toml --cgroup /sys/fs/cgroup/system.slice/nginx.service
  sudo uncork steer status
  sudo uncork steer revert";

const CONFIRM_EXAMPLES: &str = "\
Examples:
  sudo uncork steer confirm
  sudo uncork steer confirm --cgroup /sys/fs/cgroup/web";

const APPLY_EXAMPLES: &str = "\
Examples:
  sudo uncork steer apply policy.toml --cgroup /sys/fs/cgroup/system.slice/nginx.service
  sudo uncork steer apply policy.toml --cgroup /sys/fs/cgroup/web --listener public=443 --listener internal=8443
  sudo uncork steer apply policy.toml --cgroup /sys/fs/cgroup/web --geo asn.mmdb --geo country.mmdb
  sudo uncork steer apply policy.toml --cgroup /sys/fs/cgroup/web --ttl 10min  # rolled back after 10 min unless you run:
  sudo uncork steer confirm";

const APPLY_AFTER: &str = "\
Connections that sockets of the cgroup accept or open from now on get the controller and the pacing cap of the policy; \
open connections keep what they have. Over an active policy this exchanges the whole at once. It stays until \
`uncork steer revert` or a reboot. With --ttl the policy that was active before is active again after this time, or none if there \
was none. It needs CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN (root has them), a BPF file \
system at /sys/fs/bpf, and cgroups of version 2.

Exit status: 0 active, 2 wrong usage or a policy that cannot be active here (nothing was changed), 3 not possible on \
this machine, 5 a bug.";

const REVERT_EXAMPLES: &str = "\
Examples:
  sudo uncork steer revert
  sudo uncork steer revert --cgroup /sys/fs/cgroup/web";

const REVERT_AFTER: &str = "\
Connections that are open keep what they have.

Exit status: 0 reverted, 1 nothing was steered, 2 wrong usage, 3 not possible on this machine, 5 a bug.";

const CONFIRM_AFTER: &str = "\
Exit status: 0 kept, 1 no policy is pending, 2 wrong usage, 3 not possible on this machine, 5 a bug.";

const STATUS_EXAMPLES: &str = "\
Examples:
  sudo uncork steer status
  sudo uncork steer status --format json";

const STATUS_AFTER: &str = "\
Connections count from the time at which the policy was applied.

Exit status: 0 shown, 1 nothing is steered, or the process that rolls a policy back had ended (another one is started), 2 wrong \
usage, 3 not possible on this machine, 5 a bug.";

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  sudo uncork steer explain 203.0.113.7
  sudo uncork steer explain 2001:db8::7 --port 443 --at 2026-12-01T18:00:00Z";

const EXPLAIN_AFTER: &str = "\
The answer is that of the active program, not of a policy's file.

Exit status: 0 shown, 1 nothing is steered, 2 wrong usage, 3 not possible on this machine, 5 a bug.";

const MOVE_EXAMPLES: &str = "\
Examples:
  sudo uncork steer move --dry-run
  sudo uncork steer move
  sudo uncork steer move --from cubic --client 203.0.113.0/24 --client 2001:db8::/32";

const MOVE_AFTER: &str = "\
Connections that have the right controller and cap already are left alone, and so are connections that have ended on this side. The \
record of a moved connection names the new rule and has no arm, so that no experiment counts it. Connections are those of one \
network namespace: --netns names that of the service. It needs CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN.

Exit status: 0 moved, 1 nothing is steered, or the kernel refused some, 2 wrong usage, 3 not possible on this machine, 5 a bug.";

const RECORD_EXAMPLES: &str = "\
Examples:
  sudo uncork steer record records/
  sudo uncork steer record records/ --cgroup /sys/fs/cgroup/web --geo country.mmdb
  sudo uncork steer record records/ --netns web";

const RECORD_AFTER: &str = "\
One record for each steered connection that ends: rule, arm, bucket, the controller asked for and the active one, and \
the kernel's last figures. `uncork experiment analyze` reads them. Connections are those of one network namespace: --netns names \
that of the service. Where the policy is removed, recording waits for the next one. Everything is written at the end, also after \
SIGTERM; before, a directory gets a file each --records-every.

Exit status: 0 ended by the user or after --for, all records written, 1 nothing is steered, 2 wrong usage, 3 not possible on this machine, or a \
file cannot be written, 5 a bug.";

/// Give the connections of any server controllers by a policy, by BPF (docs/reference/steer.md)
#[derive(Args, Debug)]
#[command(before_help = EXAMPLES)]
pub(crate) struct SteerArgs {
    #[command(subcommand)]
    pub(super) command: SteerCommand,
}

#[derive(Debug, Subcommand)]
pub(super) enum SteerCommand {
    /// Activate a policy for a cgroup, or replace the active one
    #[command(before_help = APPLY_EXAMPLES, after_help = APPLY_AFTER)]
    Apply(SteerApplyArgs),
    /// Keep the policy that `apply --ttl` has made active
    #[command(before_help = CONFIRM_EXAMPLES, after_help = CONFIRM_AFTER)]
    Confirm(CgroupArgs),
    /// Roll a policy back that is not confirmed; `apply --ttl` starts it
    #[command(hide = true)]
    Guard {
        /// The cgroup's number
        number: u64,
    },
    /// Remove policies and everything that belongs to them
    #[command(before_help = REVERT_EXAMPLES, after_help = REVERT_AFTER)]
    Revert(CgroupArgs),
    /// Show the active policy, and how many connections got what
    #[command(before_help = STATUS_EXAMPLES, after_help = STATUS_AFTER)]
    Status {
        #[command(flatten)]
        cgroup: CgroupArgs,
        /// Output format
        #[arg(long, default_value = "human")]
        format: TextFormat,
    },
    /// Show what a client gets, and by which rule
    #[command(before_help = EXPLAIN_EXAMPLES, after_help = EXPLAIN_AFTER)]
    Explain(SteerExplainArgs),
    /// Move open connections to the controllers of the active policy
    #[command(before_help = MOVE_EXAMPLES, after_help = MOVE_AFTER)]
    Move(MoveArgs),
    /// Write a record of each steered connection that ends
    #[command(before_help = RECORD_EXAMPLES, after_help = RECORD_AFTER)]
    Record(RecordArgs),
}

#[derive(Args, Debug)]
pub(super) struct RecordArgs {
    /// Append JSON Lines to FILE, or write Parquet files to DIR/
    #[arg(value_name = "FILE|DIR/")]
    pub(super) records: PathBuf,
    /// Directory of the cgroup; default: the steered one
    #[arg(long, value_name = "DIR")]
    pub(super) cgroup: Option<PathBuf>,
    /// Network namespace of the service: a name of `ip netns`, or a file such as /proc/PID/ns/net; default: the current one
    #[arg(long, value_name = "NAME|FILE")]
    pub(super) netns: Option<PathBuf>,
    /// Time between two passes over all sockets, which find what limits them
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub(super) every: TimeDelta,
    /// End after this time
    #[arg(long = "for", value_name = "TIME")]
    pub(super) duration: Option<TimeDelta>,
    /// Write Parquet files at least this often, if there are records
    #[arg(long, value_name = "TIME", default_value = "5min")]
    pub(super) records_every: TimeDelta,
    #[command(flatten)]
    pub(super) rollup: RollupArgs,
    /// MaxMind database, for AS and country of the client's network; repeat for several
    #[arg(long, value_name = "FILE.mmdb")]
    pub(super) geo: Vec<PathBuf>,
    /// Names of client networks, lines such as 203.0.113.0/24,Lima: the column region
    #[arg(long, value_name = "FILE.csv")]
    pub(super) networks: Option<PathBuf>,
    /// Write the client's port and the time of the end, to join records with an access log; personal data
    #[arg(long)]
    pub(super) client_ports: bool,
}

#[derive(Args, Debug)]
pub(super) struct MoveArgs {
    #[command(flatten)]
    pub(super) cgroup: CgroupArgs,
    /// Network namespace of the service: a name of `ip netns`, or a file such as /proc/PID/ns/net; default: the current one
    #[arg(long, value_name = "NAME|FILE")]
    pub(super) netns: Option<PathBuf>,
    /// Only clients in this network; repeat for several
    #[arg(long, value_name = "NETWORK")]
    pub(super) client: Vec<Prefix>,
    /// Only connections for which this rule decides now, named as in `uncork steer status`
    #[arg(long, value_name = "NAME")]
    pub(super) rule: Option<String>,
    /// Only connections that have this controller
    #[arg(long, value_name = "CC")]
    pub(super) from: Option<String>,
    /// Only say what would be moved
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Output format
    #[arg(long, default_value = "human")]
    pub(super) format: TextFormat,
}

#[derive(Args, Debug)]
pub(super) struct SteerApplyArgs {
    /// Policy file (docs/reference/policy.md)
    #[arg(value_name = "FILE")]
    pub(super) file: PathBuf,
    /// Public key (Ed25519, PEM) of the signer of policy and table (docs/reference/learn.md#signatures)
    #[arg(long, value_name = "FILE")]
    pub(super) policy_key: Option<PathBuf>,
    /// Directory of the service's cgroup
    #[arg(long, value_name = "DIR")]
    pub(super) cgroup: PathBuf,
    /// Name of the listener on a port; the name of others is their port. Repeat for several
    #[arg(long, value_name = "NAME=PORT", value_parser = listener)]
    pub(super) listener: Vec<(String, u16)>,
    /// MaxMind database of the clients' origins; repeat for several, the first match counts
    #[arg(long, value_name = "FILE.mmdb")]
    pub(super) geo: Vec<PathBuf>,
    /// Roll the policy back after this time, unless `uncork steer confirm` keeps it
    #[arg(long, value_name = "TIME", value_parser = ttl)]
    pub(super) ttl: Option<TimeDelta>,
    /// When to use colour; auto honours NO_COLOR
    #[arg(long, default_value = "auto", value_name = "WHEN")]
    pub(super) color: Color,
}

#[derive(Args, Debug)]
pub(super) struct CgroupArgs {
    /// Directory of the cgroup; default: all that are steered
    #[arg(long, value_name = "DIR")]
    pub(super) cgroup: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(super) struct SteerExplainArgs {
    /// Address of the client
    #[arg(value_name = "ADDRESS")]
    pub(super) client: IpAddr,
    #[command(flatten)]
    pub(super) cgroup: CgroupArgs,
    /// Local port on which it is accepted
    #[arg(long, value_name = "PORT", default_value = "443")]
    pub(super) port: u16,
    /// It is not accepted, but opened by the service
    #[arg(long, conflicts_with = "port")]
    pub(super) opened: bool,
    /// When; default: now
    #[arg(long, value_name = "TIME")]
    pub(super) at: Option<UnixTime>,
    /// Output format
    #[arg(long, default_value = "human")]
    pub(super) format: TextFormat,
}

fn listener(text: &str) -> Result<(String, u16), String> {
    let parts = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let port = parts.and_then(|(name, port)| Some((name.to_owned(), port.parse().ok()?)));
    port.filter(|(_, port)| *port > 0)
        .ok_or_else(|| "expected a name and a port, such as public=443".to_owned())
}
