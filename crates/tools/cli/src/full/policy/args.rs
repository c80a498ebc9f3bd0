//! The arguments of `uncork policy`.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use uncork_policy::{Country, UnixTime};
use uncork_units::ByteCount;

use crate::values::{Color, TextFormat, local_path};

const EXAMPLES: &str = "\
Examples:
  uncork policy check policy.toml
  uncork policy explain policy.toml --listener public --ip 203.0.113.9
  uncork policy ecn records/ -o ecn.table";

const CHECK_EXAMPLES: &str = "\
Examples:
  uncork policy check policy.toml";

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  uncork policy explain policy.toml --listener public --ip 203.0.113.9
  uncork policy explain policy.toml --host audio-fa-bbr.example.com --path '/audio/1.ogg?bbr=1'
  uncork policy explain policy.toml --ip 203.0.113.9 --geo country.mmdb --cookie uid=7 --size 3MB
  uncork policy explain policy.toml --host audio-fa-bbr.example.com --format json";

const EXPLAIN_AFTER: &str = "\
What you leave out counts as unknown, as for a connection that was just accepted. If you give any of --host, --path, \
--header, --cookie or --size, the request counts as known and the others as absent.

Exit status: 0 done, 2 wrong usage or an invalid policy, 3 a file cannot be read, 5 a bug.";

const ECN_EXAMPLES: &str = "\
Examples:
  uncork policy ecn records/
  uncork policy ecn records/ -o ecn.table
  uncork policy ecn records/ --format json
  uncork policy ecn connections.jsonl --as-of 2026-12-01T18:00:00Z";

const ECN_AFTER: &str = "\
Only connections that sent ECT(1) count, as those of `uncork serve` with quic = \"prague\". `-o` writes a table of networks for a \
policy, with the arms l4s, classic and none (docs/howto/l4s-on-a-server.md). Only the \
seven days before --as-of count, and connections that end in the same hour have one vote for their network.

Exit status: 0 done, 2 wrong usage or no such connection, 3 a file cannot be read or written, 5 a bug.";

/// Check and explain policies, which choose a controller for each connection (docs/reference/policy.md)
#[derive(Args, Debug)]
#[command(before_help = EXAMPLES)]
pub(crate) struct PolicyArgs {
    #[command(subcommand)]
    pub(super) command: PolicyCommand,
}

#[derive(Debug, Subcommand)]
pub(super) enum PolicyCommand {
    /// Check a policy for errors
    #[command(before_help = CHECK_EXAMPLES)]
    Check(FileArgs),
    /// Explain which rule decides for a connection, and why the others do not
    #[command(before_help = EXPLAIN_EXAMPLES, after_help = EXPLAIN_AFTER)]
    Explain(Box<ExplainArgs>),
    /// Which client networks have a queue for L4S, and which a classic one, by the records of their connections
    #[command(before_help = ECN_EXAMPLES, after_help = ECN_AFTER)]
    Ecn(EcnArgs),
}

#[derive(Args, Debug)]
pub(super) struct EcnArgs {
    /// Records: Parquet files, JSON Lines, or directories of both
    #[arg(value_name = "RECORDS", required = true)]
    pub(super) records: Vec<PathBuf>,
    /// Write a table of networks for `[table]` of a policy
    #[arg(short, long, value_name = "FILE", value_parser = local_path())]
    pub(super) output: Option<PathBuf>,
    /// Section of the table, for `table` in a rule
    #[arg(long, value_name = "NAME", default_value = "ecn")]
    pub(super) section: String,
    /// Time of the verdicts [default: now]
    #[arg(long, value_name = "TIME")]
    pub(super) as_of: Option<UnixTime>,
    /// Output format
    #[arg(long, default_value = "human")]
    pub(super) format: TextFormat,
}

#[derive(Args, Debug)]
pub(super) struct FileArgs {
    /// Policy file
    #[arg(value_name = "FILE")]
    pub(super) file: PathBuf,
    /// Public key (Ed25519, PEM) of the signer of policy and table (docs/reference/learn.md#signatures)
    #[arg(long, value_name = "FILE")]
    pub(super) policy_key: Option<PathBuf>,
    /// When to use colour; auto honours NO_COLOR
    #[arg(long, default_value = "auto", value_name = "WHEN")]
    pub(super) color: Color,
}

#[derive(Args, Debug)]
pub(super) struct ExplainArgs {
    #[command(flatten)]
    pub(super) file: FileArgs,
    /// Output format
    #[arg(long, default_value = "human")]
    pub(super) format: TextFormat,
    /// Listener that accepts the connection
    #[arg(long, value_name = "NAME", help_heading = "Connection")]
    pub(super) listener: Option<String>,
    /// Address of the client
    #[arg(long, value_name = "ADDRESS", help_heading = "Connection")]
    pub(super) ip: Option<IpAddr>,
    /// Autonomous system of the client: AS64500
    #[arg(long, value_parser = system, help_heading = "Connection")]
    pub(super) asn: Option<u32>,
    /// Country of the client: PE
    #[arg(long, help_heading = "Connection")]
    pub(super) country: Option<Country>,
    /// MaxMind database to look up --ip in; repeat for several, the first match counts
    #[arg(long, value_name = "FILE.mmdb", requires = "ip", help_heading = "Connection")]
    pub(super) geo: Vec<PathBuf>,
    /// Time at which the connection is accepted: 2026-12-01T18:00:00Z
    #[arg(long, value_name = "TIME", help_heading = "Connection")]
    pub(super) at: Option<UnixTime>,
    /// Server name (SNI) of the TLS handshake
    #[arg(long, value_name = "NAME", help_heading = "Connection")]
    pub(super) sni: Option<String>,
    /// Host of the request
    #[arg(long, help_heading = "Request")]
    pub(super) host: Option<String>,
    /// Path and query of the request: '/audio/1.ogg?bbr=1'
    #[arg(long, help_heading = "Request")]
    pub(super) path: Option<String>,
    /// Header field of the request; repeat for several
    #[arg(long, value_name = "NAME: VALUE", value_parser = header, help_heading = "Request")]
    pub(super) header: Vec<(String, String)>,
    /// Cookie of the request; repeat for several
    #[arg(long, value_name = "NAME=VALUE", value_parser = cookie, help_heading = "Request")]
    pub(super) cookie: Vec<String>,
    /// Size of the object: 3MB
    #[arg(long, help_heading = "Request")]
    pub(super) size: Option<ByteCount>,
}

impl ExplainArgs {
    /// Number of header fields.
    pub(super) fn fields(&self) -> usize {
        self.header.len() + self.cookie.len()
    }
}

fn system(text: &str) -> Result<u32, String> {
    let number = text.strip_prefix("AS").unwrap_or(text).parse();
    number.map_err(|_| "expected an AS number, such as AS64500".to_owned())
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) =
        text.split_once(':').ok_or("expected a name and a value, such as 'x-client: ios/1'")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// A cookie in the syntax of the Cookie header field (RFC 6265 §4.2.1).
fn cookie(text: &str) -> Result<String, String> {
    match text.split_once('=') {
        Some((name, _)) if !name.is_empty() => Ok(text.to_owned()),
        _ => Err("expected NAME=VALUE, such as uid=7".to_owned()),
    }
}
