//! The arguments of `uncork play`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand, ValueEnum};
use uncork_play::{
    ByteRange, ClientError, CmcdMode, ConnectSpec, Connections, Target, Trust, Version,
};
use uncork_units::{ByteCount, Rate, TimeDelta};

use crate::values::{Color, Format, count, local_path, seed};

const EXAMPLES: &str = "\
Examples:
  uncork play get https://example.org/file
  uncork play audio https://example.org/song.ogg";

const GET_EXAMPLES: &str = "\
Examples:
  uncork play get https://example.org/file
  uncork play get https://127.0.0.1:8443/10MB --insecure --http 2 --repeat 5
  uncork play get http://127.0.0.1:8080/large http://127.0.0.1:8080/small --parallel 2 --gap 5s";

const AUDIO_EXAMPLES: &str = "\
Examples:
  uncork play audio https://example.org/song.ogg
  uncork play audio http://127.0.0.1:8080/song.ogg --listeners 100 --spread 30s
  uncork play audio https://127.0.0.1:8443/a.ogg --insecure --bitrate 320kbit --for 1min --format json";

const EXIT_STATUS: &str = "\
Exit status: 0 everything arrived, 1 something did not, 2 wrong usage, 3 not possible on this machine, 5 a bug, \
130 interrupted.";

/// Measure HTTP downloads and music playback as a client sees them (docs/reference/play.md)
#[derive(Args, Debug)]
#[command(before_help = EXAMPLES)]
pub(crate) struct PlayArgs {
    #[command(subcommand)]
    pub(super) command: PlayCommand,
}

#[derive(Debug, Subcommand)]
pub(super) enum PlayCommand {
    /// Download files and measure each step
    #[command(before_help = GET_EXAMPLES, after_help = EXIT_STATUS)]
    Get(Box<GetArgs>),
    /// Play songs as many listeners and measure playback latency and stutters
    #[command(before_help = AUDIO_EXAMPLES, after_help = EXIT_STATUS)]
    Audio(Box<AudioArgs>),
}

#[derive(Args, Debug)]
pub(super) struct GetArgs {
    /// URLs to download
    #[arg(value_name = "URL", required = true, value_parser = target)]
    pub(super) url: Vec<Target>,
    #[command(flatten)]
    pub(super) transport: TransportArgs,
    /// How downloads share connections
    #[arg(long, default_value = "each", value_name = "WHICH", help_heading = "Transport")]
    pub(super) connections: Which,
    /// Request only this byte range: 0-511999, or 512000- for the rest
    #[arg(long, value_name = "A-B", help_heading = "Downloads")]
    pub(super) range: Option<ByteRange>,
    /// Number of simultaneous downloads
    #[arg(long, value_name = "N", default_value = "1", value_parser = count)]
    #[arg(help_heading = "Downloads")]
    pub(super) parallel: u32,
    /// Repeat the list of URLs N times
    #[arg(long, value_name = "N", default_value = "1", value_parser = count)]
    #[arg(help_heading = "Downloads")]
    pub(super) repeat: u32,
    /// Minimum time between the starts of two downloads
    #[arg(long, value_name = "TIME", default_value = "0s", help_heading = "Downloads")]
    pub(super) gap: TimeDelta,
    /// Save the download to FILE once it is complete [default: discard]
    #[arg(short, long, value_name = "FILE", value_parser = local_path(), help_heading = "Output")]
    pub(super) output: Option<PathBuf>,
    /// Report the SHA-256 of each download
    #[arg(long, help_heading = "Output")]
    pub(super) sha256: bool,
    #[command(flatten)]
    pub(super) shown: ShownArgs,
}

#[derive(Args, Debug)]
pub(super) struct AudioArgs {
    /// Songs to play, in this order
    #[arg(value_name = "URL", required = true, value_parser = target)]
    pub(super) url: Vec<Target>,
    #[command(flatten)]
    pub(super) transport: TransportArgs,
    /// How to send player metrics (CMCD, CTA-5004)
    #[arg(long, default_value = "headers", value_name = "HOW", help_heading = "Transport")]
    pub(super) cmcd: Cmcd,
    /// Report to the server that this throughput is enough (CMCD rtp)
    #[arg(long, value_name = "RATE", help_heading = "Transport")]
    pub(super) enough: Option<Rate>,
    /// Bitrate of the songs
    #[arg(long, value_name = "RATE", default_value = "160kbit", value_parser = positive::<Rate>)]
    #[arg(help_heading = "Player")]
    pub(super) bitrate: Rate,
    /// Play only this much of each song [default: all]
    #[arg(long, value_name = "TIME", value_parser = positive::<TimeDelta>)]
    #[arg(help_heading = "Player")]
    pub(super) duration: Option<TimeDelta>,
    /// Size of a range request
    #[arg(long, value_name = "SIZE", default_value = "512kB", value_parser = positive::<ByteCount>)]
    #[arg(help_heading = "Player")]
    pub(super) chunk: ByteCount,
    /// Buffered music needed to start playing
    #[arg(long, value_name = "TIME", default_value = "1s", help_heading = "Player")]
    pub(super) start_threshold: TimeDelta,
    /// Buffered music needed to resume after a stutter
    #[arg(long, value_name = "TIME", default_value = "2s", help_heading = "Player")]
    pub(super) resume_threshold: TimeDelta,
    /// Request the next chunk once the buffer falls to this
    #[arg(long, value_name = "TIME", default_value = "30s", help_heading = "Player")]
    pub(super) low_water: TimeDelta,
    /// Number of listeners, each with its own connection
    #[arg(long, value_name = "N", default_value = "1", value_parser = count)]
    #[arg(help_heading = "Audience")]
    pub(super) listeners: u32,
    /// Spread the listeners' starts over this time, at random
    #[arg(long, value_name = "TIME", default_value = "0s", help_heading = "Audience")]
    pub(super) spread: TimeDelta,
    /// Seed of the random starts
    #[arg(long, value_name = "N", default_value = "1", value_parser = seed)]
    #[arg(help_heading = "Audience")]
    pub(super) seed: u64,
    /// Stop after this time
    #[arg(long = "for", value_name = "TIME", help_heading = "Audience")]
    pub(super) limit: Option<TimeDelta>,
    #[command(flatten)]
    pub(super) shown: ShownArgs,
}

/// How to reach servers.
#[derive(Args, Debug)]
pub(super) struct TransportArgs {
    /// HTTP version [default: the server's preference; 1.1 without TLS]
    #[arg(long, value_name = "VERSION", help_heading = "Transport")]
    http: Option<Http>,
    /// Connect to this address instead of the URL's; repeat for several, the first to answer is used
    #[arg(long, value_name = "ADDR:PORT", help_heading = "Transport")]
    connect: Vec<SocketAddr>,
    /// Trust the certificates in FILE (PEM) instead of the system's
    #[arg(long, value_name = "FILE", help_heading = "Transport")]
    ca: Option<PathBuf>,
    /// Do not verify the server's certificate
    #[arg(long, conflicts_with = "ca", help_heading = "Transport")]
    insecure: bool,
    /// Give up after this time without data
    #[arg(long, value_name = "TIME", default_value = "30s", help_heading = "Transport")]
    timeout: TimeDelta,
}

/// Output and records.
#[derive(Args, Debug)]
pub(super) struct ShownArgs {
    /// Append flow records to FILE, as JSON Lines
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(super) records: Option<PathBuf>,
    /// Output format
    #[arg(long, default_value = "human", help_heading = "Output")]
    pub(super) format: Format,
    /// Suppress progress and notes
    #[arg(short, long, help_heading = "Output")]
    pub(super) quiet: bool,
    /// When to use colour; auto honours NO_COLOR
    #[arg(long, default_value = "auto", value_name = "WHEN", help_heading = "Output")]
    pub(super) color: Color,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Http {
    #[value(name = "1.1")]
    One,
    #[value(name = "2")]
    Two,
    #[value(name = "3")]
    Three,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Cmcd {
    /// As request headers
    Headers,
    /// As a query parameter
    Query,
    /// Not at all
    Off,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Which {
    /// A new connection for each
    Each,
    /// As many as --parallel, kept open
    Kept,
    /// One connection for all, at the same time
    One,
}

impl TransportArgs {
    pub(super) fn spec(&self) -> ConnectSpec {
        let version = self.http.map(|version| match version {
            Http::One => Version::Http1,
            Http::Two => Version::Http2,
            Http::Three => Version::Http3,
        });
        let trust = match &self.ca {
            _ if self.insecure => Trust::Anybody,
            Some(file) => Trust::File(file.clone()),
            None => Trust::System,
        };
        ConnectSpec { version, trust, to: self.connect.clone(), patience: self.timeout }
    }
}

impl Cmcd {
    pub(super) fn mode(self) -> CmcdMode {
        match self {
            Self::Headers => CmcdMode::Headers,
            Self::Query => CmcdMode::Query,
            Self::Off => CmcdMode::Off,
        }
    }
}

impl Which {
    pub(super) fn connections(self) -> Connections {
        match self {
            Self::Each => Connections::Each,
            Self::Kept => Connections::Kept,
            Self::One => Connections::One,
        }
    }
}

/// The problem without the value, which clap's message already has.
fn target(text: &str) -> Result<Target, String> {
    text.parse().map_err(|error| match error {
        ClientError::Url { problem, .. } => problem,
        other => other.to_string(),
    })
}

/// A quantity of more than zero.
fn positive<T: FromStr<Err: ToString> + Default + PartialEq>(text: &str) -> Result<T, String> {
    let quantity: T = text.parse().map_err(|error: T::Err| error.to_string())?;
    if quantity == T::default() { Err("expected more than 0".to_owned()) } else { Ok(quantity) }
}
