//! The arguments of `uncork policy`.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use uncork_policy::{Country, UnixTime};
use uncork_units::ByteCount;

use crate::args::Color;

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
What is not given is not known yet, as when a connection was just accepted. A request is known as a whole: with one of \
--host, --path, --header, --cookie and --size the others are absent.

Exit status: 0 done, 2 wrong usage or a policy that is none.";

/// Which controller for which connection: files that say so (docs/policy.md)
#[derive(Args, Debug)]
pub(crate) struct PolicyArgs {
    #[command(subcommand)]
    pub(super) command: PolicyCommand,
}

#[derive(Debug, Subcommand)]
pub(super) enum PolicyCommand {
    /// Read a policy and say what is wrong with it
    #[command(before_help = CHECK_EXAMPLES)]
    Check(FileArgs),
    /// Say which rule decides for a connection, and why not the others
    #[command(before_help = EXPLAIN_EXAMPLES, after_help = EXPLAIN_AFTER)]
    Explain(Box<ExplainArgs>),
}

#[derive(Args, Debug)]
pub(super) struct FileArgs {
    /// The policy
    #[arg(value_name = "FILE")]
    pub(super) file: PathBuf,
    /// When to use colours; auto also honours NO_COLOR
    #[arg(long, default_value = "auto", value_name = "WHEN")]
    pub(super) color: Color,
}

#[derive(Args, Debug)]
pub(super) struct ExplainArgs {
    #[command(flatten)]
    pub(super) file: FileArgs,
    /// How to tell it
    #[arg(long, default_value = "human")]
    pub(super) format: Format,
    /// Name of the listener that accepts the connection
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
    /// Database in MaxMind's format that tells where --ip is; several are asked in turn
    #[arg(long, value_name = "FILE.mmdb", requires = "ip", help_heading = "Connection")]
    pub(super) geo: Vec<PathBuf>,
    /// When the connection is accepted: 2026-12-01T18:00:00Z
    #[arg(long, value_name = "TIME", help_heading = "Connection")]
    pub(super) at: Option<UnixTime>,
    /// The server's name in the TLS handshake
    #[arg(long, value_name = "NAME", help_heading = "Connection")]
    pub(super) sni: Option<String>,
    /// The host that is asked
    #[arg(long, help_heading = "Request")]
    pub(super) host: Option<String>,
    /// The path that is asked for, with what follows a question mark
    #[arg(long, help_heading = "Request")]
    pub(super) path: Option<String>,
    /// A header field
    #[arg(long, value_name = "NAME: VALUE", value_parser = header, help_heading = "Request")]
    pub(super) header: Vec<(String, String)>,
    /// A cookie
    #[arg(long, value_name = "NAME=VALUE", value_parser = cookie, help_heading = "Request")]
    pub(super) cookie: Vec<String>,
    /// Size of the object: 3MB
    #[arg(long, help_heading = "Request")]
    pub(super) size: Option<ByteCount>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// In words
    Human,
    /// For programs
    Json,
}

impl ExplainArgs {
    /// How many header fields there are.
    pub(super) fn fields(&self) -> usize {
        self.header.len() + self.cookie.len()
    }
}

fn system(text: &str) -> Result<u32, String> {
    let number = text.strip_prefix("AS").unwrap_or(text).parse();
    number.map_err(|_| "write AS and a number, such as AS64500".to_owned())
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("write it as 'x-client: ios/1'")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// As a Cookie header field has it (RFC 6265 §4.2.1).
fn cookie(text: &str) -> Result<String, String> {
    match text.split_once('=') {
        Some((name, _)) if !name.is_empty() => Ok(text.to_owned()),
        _ => Err("a cookie is a name and a value: write uid=7".to_owned()),
    }
}
