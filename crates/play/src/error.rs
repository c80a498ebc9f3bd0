//! Why a client cannot begin, or a transfer has failed.

use std::error::Error;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use uncork_units::TimeDelta;

use crate::Version;

/// What went wrong, as whoever started the client sees it.
#[derive(Debug)]
#[non_exhaustive]
pub enum ClientError {
    /// This is no address that can be fetched.
    Url {
        /// What was given.
        url: String,
        /// What to write instead.
        problem: String,
    },
    /// Nobody could be trusted: the authorities' certificates cannot be had.
    Authorities(String),
    /// The host has no address.
    Resolve {
        /// Its name.
        host: String,
        /// What the system says.
        error: io::Error,
    },
    /// Nobody answers, or says no.
    Connect {
        /// Where.
        address: SocketAddr,
        /// What the system says.
        error: io::Error,
    },
    /// TLS came to no end, such as for a certificate that is not trusted.
    Tls {
        /// Who was asked for.
        host: String,
        /// Why.
        problem: String,
    },
    /// Nobody speaks QUIC there, or somebody who is not believed.
    Quic {
        /// Where.
        address: SocketAddr,
        /// Why.
        problem: String,
    },
    /// The server does not speak the version that was asked for.
    Version(Version),
    /// The connection was of no use any more.
    Broken {
        /// How much of the body had arrived.
        received: u64,
        /// Of how much, if that was told.
        size: Option<u64>,
        /// Why.
        problem: String,
    },
    /// The server answers that it does not give it.
    Status(u16),
    /// The answer is not of the bytes that were asked for.
    Range {
        /// Which were.
        asked: String,
        /// What it is.
        told: String,
    },
    /// The body's end came at another place than was told.
    Length {
        /// How much arrived.
        received: u64,
        /// How much was told.
        size: u64,
    },
    /// Nothing came for so long.
    Timeout(TimeDelta),
    /// What arrived cannot be kept.
    File(PathBuf, io::Error),
    /// What is to be listened to cannot be.
    Songs(String),
    /// It was broken off.
    Interrupted,
    /// The system has no thread or no file descriptor left.
    System(io::Error),
}

impl ClientError {
    /// Whether what was given is wrong, rather than the world.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Url { .. } | Self::Authorities(_) | Self::Songs(_))
    }

    /// A connection failed before anything of a body had arrived.
    pub(crate) fn broken(error: &(dyn Error + 'static)) -> Self {
        Self::Broken { received: 0, size: None, problem: chain(error) }
    }
}

/// An error and what is behind it, as one line.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        let inner = source.to_string();
        if !text.contains(&inner) {
            text = format!("{text}: {inner}");
        }
        next = source.source();
    }
    text
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url { url, problem } => write!(f, "'{url}' is no address to fetch: {problem}"),
            Self::Authorities(problem) | Self::Songs(problem) => f.write_str(problem),
            Self::Resolve { host, error } => write!(f, "no address for '{host}': {error}"),
            Self::Connect { address, error } => write!(f, "cannot connect to {address}: {error}"),
            Self::Tls { host, problem } => write!(f, "no TLS with '{host}': {problem}"),
            Self::Quic { address, problem } => write!(f, "no QUIC with {address}: {problem}"),
            Self::Version(version) => write!(f, "the server does not speak {version}"),
            Self::Broken { received, size, problem } => {
                let of = size.map_or(String::new(), |size| format!(" of {size}"));
                write!(f, "the connection failed after {received}{of} bytes: {problem}")
            }
            Self::Status(status) => write!(f, "status {status}"),
            Self::Range { asked, told } => write!(f, "asked for {asked}, got {told}"),
            Self::Length { received, size } => {
                write!(f, "{received} bytes arrived where {size} were told")
            }
            Self::Timeout(span) => write!(f, "nothing came for {span}"),
            Self::File(path, error) => write!(f, "cannot write '{}': {error}", path.display()),
            Self::Interrupted => f.write_str("interrupted"),
            Self::System(error) => write!(f, "cannot start: {error}"),
        }
    }
}

impl Error for ClientError {}
