//! The arguments of `uncork host prove`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use uncork_flow::LARGE_BYTES;
use uncork_host::change::Prefix;
use uncork_units::{ByteCount, Probability, TimeDelta};

use super::change_args::StateArgs;
use crate::values::{TextFormat, local_path, seed};

pub(super) const EXAMPLES: &str = "\
Examples:
  uncork host prove cubic bbr --dry-run
  sudo uncork host prove cubic bbr -o bbr-test
  sudo uncork host prove cubic bbr --to 10.0.0.0/8 --window 10min --pairs 20
  sudo uncork host prove cubic cubic            # what chance alone does";

pub(super) const AFTER: &str = "\
The host alternates between both controllers in pairs of switchback windows, each pair in random order. A connection counts if it was \
opened within a window, after the burn-in at its start. Intervals come from the pairs: they need 6, and each window \
10 large or small transfers. Windows are compared within client networks, so that a change in the mix of clients is not \
taken for an effect. A limit that is exceeded ends the test. Afterwards the host is as before, also when this \
command is killed. It needs CAP_NET_ADMIN, and the right to write --state-dir; other commands that change this host wait until it has ended. \
Records have client networks and ports (docs/reference/host.md).

Exit status: 0 done, 1 no answer, B is worse or breaks a guardrail, or the test ended early because a limit was exceeded or something else changed a setting, 2 wrong usage, \
3 the host cannot be changed or a file cannot be written, 5 a bug, 130 interrupted.";

#[derive(Args, Debug)]
pub(super) struct ProveArgs {
    /// Control: the controller to compare with
    #[arg(value_name = "A", value_parser = NonEmptyStringValueParser::new())]
    pub(super) a: String,
    /// Candidate controller
    #[arg(value_name = "B", value_parser = NonEmptyStringValueParser::new())]
    pub(super) b: String,
    /// Change the controller of the route to this network, not the default; may be repeated
    #[arg(long, value_name = "NETWORK")]
    pub(super) to: Vec<Prefix>,
    /// Pairs of windows
    #[arg(long, value_name = "N", default_value = "12")]
    pub(super) pairs: u32,
    /// Length of a switchback window: much longer than a transfer
    #[arg(long, alias = "block", value_name = "TIME", default_value = "5min")]
    pub(super) window: TimeDelta,
    /// Time at the start of each window that does not count
    #[arg(long, value_name = "TIME", default_value = "30s")]
    pub(super) burn_in: TimeDelta,
    /// Payload from which a connection counts as a large transfer
    #[arg(long, value_name = "SIZE", default_value_t = ByteCount::new(LARGE_BYTES))]
    pub(super) large: ByteCount,
    /// End the test if more of the payload than this is retransmitted, in ten passes
    #[arg(long, value_name = "SHARE", default_value = "10%")]
    pub(super) max_retransmitted: Probability,
    /// End the test if the 95th percentile of round-trip times is longer, in ten passes
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub(super) max_rtt_p95: TimeDelta,
    /// Guardrail: do not enable B if it retransmits this much more of the payload than A
    #[arg(long, value_name = "SHARE", default_value = "2%")]
    pub(super) max_retransmitted_increase: Probability,
    /// Time between two passes over all sockets
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub(super) every: TimeDelta,
    /// Seed for the order of windows [default: random]
    #[arg(long, value_name = "N", value_parser = seed)]
    pub(super) seed: Option<u64>,
    /// Print the order of windows and the duration, and change nothing
    #[arg(long, conflicts_with_all = ["output", "format"])]
    pub(super) dry_run: bool,
    /// Write the records of connections and the result to this directory
    #[arg(long, short, value_name = "DIR", value_parser = local_path())]
    pub(super) output: Option<PathBuf>,
    /// Output format
    #[arg(long, default_value = "human")]
    pub(super) format: TextFormat,
    /// Print no progress
    #[arg(long, short)]
    pub(super) quiet: bool,
    #[command(flatten)]
    pub(super) state: StateArgs,
}
