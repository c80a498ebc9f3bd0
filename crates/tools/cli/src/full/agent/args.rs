//! The arguments of `uncork agent`.

use std::path::PathBuf;

use clap::Args;
use uncork_fleet::HostName;
use uncork_units::TimeDelta;

const EXAMPLES: &str = "\
Examples:
  uncork agent /srv/fleet --public-key fleet.key.pub
  uncork agent s3://policies/fleet --public-key fleet.key.pub
  uncork agent /srv/fleet --public-key fleet.key.pub --place fra1 --every 1min
  uncork agent /srv/fleet --public-key fleet.key.pub --apply 'uncork policy check $POLICY' --once";

const AFTER: &str = "\
It asks the store with a conditional request, verifies signature, version and expiry, and has the link DIR/current lead to the whole \
version. `uncork serve`, the units of `uncork steer` and those of routes follow the link. It opens no port. If the store, a key or \
the clock fails, the last good version stays until it expires; then the host has its default.

Exit status: 0 ended by a signal, or with --once the version is active; 1 with --once, if it is not; 2 wrong usage; 3 another agent \
runs, or the directory cannot be written; 5 a bug.";

/// Keep a fleet's policy active on this host, from a store (docs/reference/fleet.md)
#[derive(Args, Debug)]
#[command(before_help = EXAMPLES, after_help = AFTER)]
pub(crate) struct AgentArgs {
    /// Store: a directory, s3://, gs:// or az://BUCKET/PREFIX, or https://HOST/PREFIX
    #[arg(value_name = "STORE")]
    pub(super) store: String,
    /// Public key of the publisher; repeat for several
    #[arg(long, value_name = "FILE", required = true)]
    pub(super) public_key: Vec<PathBuf>,
    /// Directory of the versions and of the link `current`
    #[arg(short, long, value_name = "DIR", default_value = "/var/lib/uncork-agent")]
    pub(super) output: PathBuf,
    /// Name of this host in stages and reports [default: the kernel's]
    #[arg(long, value_name = "NAME")]
    pub(super) host: Option<HostName>,
    /// Place of this host, for stages such as place:fra1
    #[arg(long, value_name = "NAME")]
    pub(super) place: Option<HostName>,
    /// Time between two polls; it varies by a tenth
    #[arg(long, value_name = "TIME", default_value = "1min")]
    pub(super) every: TimeDelta,
    /// Time between two reports that say nothing new
    #[arg(long, value_name = "TIME", default_value = "10min")]
    pub(super) report_every: TimeDelta,
    /// Policy while no version is valid [default: one without rules]
    #[arg(long, value_name = "FILE")]
    pub(super) default: Option<PathBuf>,
    /// Shell command that applies the policy in $POLICY; if it fails, the version before returns
    #[arg(long, value_name = "COMMAND")]
    pub(super) apply: Option<String>,
    /// File with the path of the policy that is applied, such as /run/uncork-steer-nginx/policy; repeat for several
    #[arg(long, value_name = "FILE")]
    pub(super) applied: Vec<PathBuf>,
    /// Longest time until the files of --applied name the version
    #[arg(long, value_name = "TIME", default_value = "2min")]
    pub(super) patience: TimeDelta,
    /// Poll once
    #[arg(long)]
    pub(super) once: bool,
}
