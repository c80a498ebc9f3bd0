//! The arguments of `uncork play`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use uncork_play::{
    ByteRange, ClientError, CmcdMode, ConnectSpec, Connections, Target, Trust, Version,
};
use uncork_units::{ByteCount, Rate, TimeDelta};

use crate::args::{Color, Format, count, seed};

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
Exit status: 0 all has arrived, 1 something has not, 2 wrong usage, 3 the environment cannot do it, 5 a bug, \
130 interrupted.";

/// Download or listen over HTTP, and say how it was (docs/play.md)
#[derive(Args, Debug)]
pub(crate) struct PlayArgs {
    #[command(subcommand)]
    pub(super) command: PlayCommand,
}

#[derive(Debug, Subcommand)]
pub(super) enum PlayCommand {
    /// Download files, and measure how long each step takes
    #[command(before_help = GET_EXAMPLES, after_help = EXIT_STATUS)]
    Get(Box<GetArgs>),
    /// Listen to songs, as many listeners at once, and tell latency and stutters
    #[command(before_help = AUDIO_EXAMPLES, after_help = EXIT_STATUS)]
    Audio(Box<AudioArgs>),
}

#[derive(Args, Debug)]
pub(super) struct GetArgs {
    /// What to download
    #[arg(value_name = "URL", required = true, value_parser = target)]
    pub(super) url: Vec<Target>,
    #[command(flatten)]
    pub(super) transport: TransportArgs,
    /// Which connections downloads use
    #[arg(long, default_value = "each", value_name = "WHICH", help_heading = "Transport")]
    pub(super) connections: Which,
    /// Only these bytes of each file: 0-511999, or 512000- for all from there on
    #[arg(long, value_name = "A-B", help_heading = "Downloads")]
    pub(super) range: Option<ByteRange>,
    /// Downloads at a time
    #[arg(long, value_name = "N", default_value = "1", value_parser = count)]
    #[arg(help_heading = "Downloads")]
    pub(super) parallel: u32,
    /// Fetch all URLs so often
    #[arg(long, value_name = "N", default_value = "1", value_parser = count)]
    #[arg(help_heading = "Downloads")]
    pub(super) repeat: u32,
    /// From the beginning of a download to that of the next, at least
    #[arg(long, value_name = "TIME", default_value = "0s", help_heading = "Downloads")]
    pub(super) gap: TimeDelta,
    /// Keep what arrives in FILE, if all of it does; else it is thrown away
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub(super) output: Option<PathBuf>,
    /// Tell the SHA-256 of each
    #[arg(long, help_heading = "Output")]
    pub(super) sha256: bool,
    #[command(flatten)]
    pub(super) shown: ShownArgs,
}

#[derive(Args, Debug)]
pub(super) struct AudioArgs {
    /// The songs, one after the other
    #[arg(value_name = "URL", required = true, value_parser = target)]
    pub(super) url: Vec<Target>,
    #[command(flatten)]
    pub(super) transport: TransportArgs,
    /// How the player tells the server of itself (CTA-5004)
    #[arg(long, default_value = "headers", value_name = "HOW", help_heading = "Transport")]
    pub(super) cmcd: Cmcd,
    /// Tell the server that this rate is enough (rtp of CMCD)
    #[arg(long, value_name = "RATE", help_heading = "Transport")]
    pub(super) enough: Option<Rate>,
    /// What the songs are encoded with
    #[arg(long, value_name = "RATE", default_value = "160kbit", help_heading = "Player")]
    pub(super) bitrate: Rate,
    /// How much of each song is played; by default all that its file has
    #[arg(long, value_name = "TIME", help_heading = "Player")]
    pub(super) duration: Option<TimeDelta>,
    /// Bytes of a range request
    #[arg(long, value_name = "SIZE", default_value = "512kB", help_heading = "Player")]
    pub(super) chunk: ByteCount,
    /// Music that must be buffered before the first sound
    #[arg(long, value_name = "TIME", default_value = "1s", help_heading = "Player")]
    pub(super) start_threshold: TimeDelta,
    /// Music that must be buffered before it goes on after a stutter
    #[arg(long, value_name = "TIME", default_value = "2s", help_heading = "Player")]
    pub(super) resume_threshold: TimeDelta,
    /// The next chunk is asked for when no more than this is buffered
    #[arg(long, value_name = "TIME", default_value = "30s", help_heading = "Player")]
    pub(super) low_water: TimeDelta,
    /// How many listen, each with a connection of its own
    #[arg(long, value_name = "N", default_value = "1", value_parser = count)]
    #[arg(help_heading = "Audience")]
    pub(super) listeners: u32,
    /// Each listener clicks at a time of its own, drawn from this span
    #[arg(long, value_name = "TIME", default_value = "0s", help_heading = "Audience")]
    pub(super) spread: TimeDelta,
    /// Seed of these times; equal seeds draw the same
    #[arg(long, value_name = "N", default_value = "1", value_parser = seed)]
    #[arg(help_heading = "Audience")]
    pub(super) seed: u64,
    /// Listen no longer than this
    #[arg(long = "for", value_name = "TIME", help_heading = "Audience")]
    pub(super) limit: Option<TimeDelta>,
    #[command(flatten)]
    pub(super) shown: ShownArgs,
}

/// How servers are talked to.
#[derive(Args, Debug)]
pub(super) struct TransportArgs {
    /// Version of HTTP; by default what the server prefers, and 1.1 without TLS
    #[arg(long, value_name = "VERSION", help_heading = "Transport")]
    http: Option<Http>,
    /// Connect to this address instead of the URL's; repeated, to the first that answers
    #[arg(long, value_name = "ADDR:PORT", help_heading = "Transport")]
    connect: Vec<SocketAddr>,
    /// Trust the certificates in FILE (PEM), instead of this machine's authorities
    #[arg(long, value_name = "FILE", help_heading = "Transport")]
    ca: Option<PathBuf>,
    /// Believe whoever answers
    #[arg(long, conflicts_with = "ca", help_heading = "Transport")]
    insecure: bool,
    /// Give up when nothing comes for so long
    #[arg(long, value_name = "TIME", default_value = "30s", help_heading = "Transport")]
    timeout: TimeDelta,
}

/// What is told, and where.
#[derive(Args, Debug)]
pub(super) struct ShownArgs {
    /// Append flow records to FILE, a line of JSON for each
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(super) records: Option<PathBuf>,
    /// What is printed
    #[arg(long, default_value = "human", help_heading = "Output")]
    pub(super) format: Format,
    /// Print no progress and no notes
    #[arg(short, long, help_heading = "Output")]
    pub(super) quiet: bool,
    /// When to use colours; auto also honours NO_COLOR
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
    /// In headers
    Headers,
    /// In the query of the URL
    Query,
    /// Not at all
    Off,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Which {
    /// Each its own
    Each,
    /// As many as --parallel says, which are kept
    Kept,
    /// One for all at the same time
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

/// What is wrong is told without the value, which is told with the argument.
fn target(text: &str) -> Result<Target, String> {
    text.parse().map_err(|error| match error {
        ClientError::Url { problem, .. } => problem,
        other => other.to_string(),
    })
}
