//! The arguments of `uncork host watch`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use uncork_units::TimeDelta;
use uncork_watch::{GroupBy, SortBy};

use crate::full::rollup_args::RollupArgs;
use crate::values::count;

pub(super) const EXAMPLES: &str = "\
Examples:
  uncork host watch
  uncork host watch --by controller
  uncork host watch --filter 203.0.113. --sort rtt
  uncork host watch --records connections/ --listen 127.0.0.1:9464 --quiet
  uncork host watch --record bad-minute.jsonl --for 1min
  uncork host watch --replay bad-minute.jsonl --by port";

pub(super) const AFTER: &str = "\
It changes nothing and needs no privileges. The kernel also reports the last figures of every connection that ends, \
however short it was. `limited by` is application, receiver, send-buffer, pacing-cap or network \
(docs/reference/watch.md). Recorded sessions contain the addresses of the host's connections; records and metrics have client \
networks and ports.

Exit status: 0 ended by the user or after --for, 2 wrong usage, 3 the kernel does not report or a file cannot be written, \
5 a bug.";

/// Which connections to show, and what to leave of them.
#[derive(Args, Debug)]
pub(super) struct WatchArgs {
    /// Time between two passes over all sockets
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub(super) every: TimeDelta,
    /// End after this time
    #[arg(long = "for", value_name = "TIME")]
    pub(super) duration: Option<TimeDelta>,
    /// Rows of the table
    #[arg(long, value_name = "GROUP", default_value = "socket", value_parser = group_by())]
    pub(super) by: GroupBy,
    /// Column that orders the table
    #[arg(long, value_name = "COLUMN", default_value = "rate", value_parser = sort_by())]
    pub(super) sort: SortBy,
    /// Show only connections with TEXT in addresses, controller or limit
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(super) filter: String,
    /// Show connections that send nothing, too
    #[arg(long)]
    pub(super) idle: bool,
    /// Print lines, even to a terminal
    #[arg(long, conflicts_with = "quiet")]
    pub(super) plain: bool,
    /// Maximum rows of a pass, if stdout is not a terminal
    #[arg(long, value_name = "N", default_value = "20", value_parser = count)]
    pub(super) rows: u32,
    /// Print no table and no notes
    #[arg(long, short)]
    pub(super) quiet: bool,
    /// Record each connection that ends: append JSON Lines to FILE, or write Parquet files to DIR/
    #[arg(long, value_name = "FILE|DIR/")]
    pub(super) records: Option<PathBuf>,
    /// Write Parquet files at least this often, if there are records
    #[arg(long, value_name = "TIME", default_value = "5min", requires = "records")]
    pub(super) records_every: TimeDelta,
    #[command(flatten)]
    pub(super) rollup: RollupArgs,
    /// Record the session, to replay it
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub(super) record: Option<PathBuf>,
    /// Replay a recorded session: in a terminal in its own time, else at once
    #[arg(long, value_name = "FILE", conflicts_with_all = ["every", "duration"])]
    pub(super) replay: Option<PathBuf>,
    /// Address at which Prometheus may ask for /metrics
    #[arg(long, value_name = "ADDR:PORT")]
    pub(super) listen: Option<SocketAddr>,
}

fn group_by() -> impl TypedValueParser<Value = GroupBy> {
    named(GroupBy::ALL, GroupBy::name)
}

fn sort_by() -> impl TypedValueParser<Value = SortBy> {
    named(SortBy::ALL, SortBy::name)
}

/// One of `all`, by its name.
fn named<T: Copy + Default + Send + Sync + 'static, const N: usize>(
    all: [T; N],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    let parser = PossibleValuesParser::new(all.map(name));
    parser.map(move |text| all.into_iter().find(|one| name(*one) == text).unwrap_or_default())
}
