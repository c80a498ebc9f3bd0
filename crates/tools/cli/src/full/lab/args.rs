//! The arguments of `uncork lab from-records` and `uncork lab internet`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use uncork_cc::CcSpec;
use uncork_internet::Group;
use uncork_units::Probability;

use crate::exit;
use crate::values::{count, local_path, seed, threads};

const INTERNET_EXAMPLES: &str = "\
Examples:
  uncork lab internet records --networks 200 --systems 10 --connections 20000 -o records
  uncork lab internet records --policy learned/current/policy.toml --from 2026-11-03 -o records
  uncork lab internet oracle --networks 200 --systems 10 -o oracle.csv
  uncork lab internet oracle --networks 200 --systems 10 --only AS64512:0 --draw 1 -o again.csv
  uncork lab internet lines --networks 200 --systems 10 -o lines.csv";

const FROM_RECORDS_EXAMPLES: &str = "\
Examples:
  uncork lab from-records records/ -o mine.toml
  uncork lab from-records records.jsonl --cc cubic --cc bbr3 --cc bbr3:loss_floor -o mine.toml
  uncork lab from-records records/ --cc cubic:linux --cc bbr1 --only 203.0.113.0/24 -o network.toml
  uncork lab run mine.toml -o report";

#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// Make a scenario of the records of a server: the paths of its clients, by autonomous system
    #[command(before_help = FROM_RECORDS_EXAMPLES, after_help = exit::LAB_STATUS)]
    FromRecords(FromRecordsArgs),
    /// A simulated Internet: networks, users and days; the records of a server in it under a policy, and
    /// what each controller is truly worth there
    #[command(before_help = INTERNET_EXAMPLES, after_help = exit::LAB_STATUS)]
    Internet(InternetArgs),
}

#[derive(Args, Debug)]
pub(crate) struct FromRecordsArgs {
    /// Files of records, Parquet or JSON Lines, or directories of them
    #[arg(value_name = "RECORDS", required = true)]
    pub(super) records: Vec<PathBuf>,
    /// A controller to try; may be given several times [default: cubic and bbr3]
    #[arg(long, value_name = "CC", default_values = ["cubic", "bbr3"], hide_default_value = true)]
    pub(super) cc: Vec<CcSpec>,
    /// Clients of each system with each controller
    #[arg(long, value_name = "N", value_parser = clients, default_value = "20")]
    #[arg(allow_hyphen_values = true)]
    pub(super) clients: u32,
    /// Give networks with at least N responses of 3 MB or more populations of their own, in addition to their
    /// systems' [default: systems alone]
    #[arg(long, value_name = "N", value_parser = count, allow_hyphen_values = true)]
    pub(super) by_network: Option<u32>,
    /// The clients of this system or network alone, such as AS64500 or 203.0.113.0/24 [default: all]
    #[arg(long, value_name = "AS|NETWORK", conflicts_with = "by_network")]
    pub(super) only: Option<String>,
    /// File for the scenario; by default it is printed
    #[arg(short, long, value_name = "FILE", value_parser = local_path(), help_heading = "Output")]
    pub(super) output: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct InternetArgs {
    #[command(subcommand)]
    pub(super) command: InternetCommand,
}

#[derive(Debug, Subcommand)]
pub(super) enum InternetCommand {
    /// Simulate connections under a policy, and write their records as `uncork serve` does
    #[command(before_help = INTERNET_EXAMPLES, after_help = exit::LAB_STATUS)]
    Records(RecordsArgs),
    /// Simulate both controllers in all groups of networks, and write what they are worth as CSV
    #[command(before_help = INTERNET_EXAMPLES, after_help = exit::LAB_STATUS)]
    Oracle(OracleArgs),
    /// Write the lines of users as CSV: rate, round-trip time, loss, buffer and policer, which records only
    /// show in part
    #[command(before_help = INTERNET_EXAMPLES, after_help = exit::LAB_STATUS)]
    Lines(LinesArgs),
}

/// Which world.
#[derive(Args, Clone, Copy, Debug)]
pub(super) struct WorldArgs {
    /// Seed of the world
    #[arg(long, value_name = "N", value_parser = seed, default_value = "1", help_heading = "World")]
    #[arg(allow_hyphen_values = true)]
    pub(super) seed: u64,
    /// Client networks
    #[arg(long, value_name = "N", value_parser = count, default_value = "20000")]
    #[arg(allow_hyphen_values = true, help_heading = "World")]
    pub(super) networks: u32,
    /// Autonomous systems
    #[arg(long, value_name = "N", value_parser = count, default_value = "300")]
    #[arg(allow_hyphen_values = true, help_heading = "World")]
    pub(super) systems: u32,
}

#[derive(Args, Debug)]
pub(super) struct RecordsArgs {
    #[command(flatten)]
    pub(super) world: WorldArgs,
    /// The active policy, with its table; by default a tenth of the users take part in an experiment with
    /// cubic and bbr3
    #[arg(long, value_name = "FILE", help_heading = "Traffic")]
    pub(super) policy: Option<PathBuf>,
    /// The first day
    #[arg(long, value_name = "DAY", default_value = "2026-11-02", help_heading = "Traffic")]
    pub(super) from: String,
    /// Days
    #[arg(long, value_name = "N", value_parser = days, default_value = "1")]
    #[arg(allow_hyphen_values = true, help_heading = "Traffic")]
    pub(super) days: u32,
    /// Connections of a day, about
    #[arg(long, value_name = "N", value_parser = connections, default_value = "200000")]
    #[arg(allow_hyphen_values = true, help_heading = "Traffic")]
    pub(super) connections: u64,
    /// The part that is simulated of the connections that no experiment decides on
    #[arg(long, value_name = "SHARE", default_value = "5%", help_heading = "Traffic")]
    pub(super) others: Probability,
    /// Connections simulated at a time; by default as many as there are processors
    #[arg(long, value_name = "N", value_parser = threads, allow_hyphen_values = true)]
    pub(super) jobs: Option<NonZeroUsize>,
    /// Directory for the records, a Parquet file for each hour
    #[arg(short, long, value_name = "DIR", value_parser = local_path(), help_heading = "Output")]
    pub(super) output: PathBuf,
    /// Do not say what it cost
    #[arg(short, long, help_heading = "Output")]
    pub(super) quiet: bool,
}

#[derive(Args, Debug)]
pub(super) struct OracleArgs {
    #[command(flatten)]
    pub(super) world: WorldArgs,
    /// The controller that clients have
    #[arg(long, value_name = "CC", default_value = "cubic", help_heading = "Comparison")]
    pub(super) control: CcSpec,
    /// The controller that they might have
    #[arg(long, value_name = "CC", default_value = "bbr3", help_heading = "Comparison")]
    pub(super) treated: CcSpec,
    /// Maximum connections with each controller for a group of networks, and as many with small objects; on
    /// average: more where there is more traffic, fewer where the lift is known well enough
    #[arg(long, value_name = "N", value_parser = sample, default_value = "1000")]
    #[arg(allow_hyphen_values = true, help_heading = "Comparison")]
    pub(super) connections: u32,
    /// Only these groups, each with at most N connections: an AS and a profile, as in the file
    #[arg(long, value_name = "AS:PROFILE", value_delimiter = ',', help_heading = "Comparison")]
    pub(super) only: Vec<Group>,
    /// Which users are drawn; another number draws others
    #[arg(long, value_name = "N", default_value = "0", allow_hyphen_values = true)]
    #[arg(help_heading = "Comparison")]
    pub(super) draw: u16,
    /// Connections simulated at a time; by default as many as there are processors
    #[arg(long, value_name = "N", value_parser = threads, allow_hyphen_values = true)]
    pub(super) jobs: Option<NonZeroUsize>,
    /// The file
    #[arg(short, long, value_name = "FILE", value_parser = local_path(), help_heading = "Output")]
    pub(super) output: PathBuf,
}

#[derive(Args, Debug)]
pub(super) struct LinesArgs {
    #[command(flatten)]
    pub(super) world: WorldArgs,
    /// Lines, drawn by their traffic
    #[arg(long, value_name = "N", value_parser = sample, default_value = "20000")]
    #[arg(allow_hyphen_values = true, help_heading = "Lines")]
    pub(super) count: u32,
    /// The file
    #[arg(short, long, value_name = "FILE", value_parser = local_path(), help_heading = "Output")]
    pub(super) output: PathBuf,
}

/// Days of a simulated Internet.
fn days(text: &str) -> Result<u32, &'static str> {
    within(count(text)?, 1, 3_650).ok_or("expected 1 to 3650")
}

/// Connections of a day.
fn connections(text: &str) -> Result<u64, &'static str> {
    within(seed(text)?, 1, 1_000_000_000).ok_or("expected 1 to 1000000000")
}

/// Connections that make an estimate: twenty parts of two at least.
fn sample(text: &str) -> Result<u32, &'static str> {
    within(count(text)?, 40, 1_000_000).ok_or("expected 40 to 1000000")
}

/// Clients of a system.
fn clients(text: &str) -> Result<u32, &'static str> {
    within(count(text)?, 1, 5_000).ok_or("expected 1 to 5000")
}

fn within<T: Copy + PartialOrd>(value: T, least: T, most: T) -> Option<T> {
    (least <= value && value <= most).then_some(value)
}
