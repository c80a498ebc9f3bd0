//! Errors of clients and transfers.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use thiserror::Error as ThisError;
use uncork_units::TimeDelta;

use crate::Version;

/// Why a client cannot start, or a transfer failed.
#[derive(Debug, ThisError)]
#[non_exhaustive]
pub enum ClientError {
    /// A URL that cannot be fetched.
    #[error("cannot fetch '{url}': {problem}")]
    Url {
        /// The URL.
        url: String,
        /// The problem and remedy.
        problem: String,
    },
    /// The trusted certificates cannot be read.
    #[error("{0}")]
    Authorities(String),
    /// The host has no address.
    #[error("no address for '{host}': {error}")]
    Resolve {
        /// Its host name.
        host: String,
        /// The system's error.
        error: io::Error,
    },
    /// The address refused the connection or did not answer.
    #[error("cannot connect to {address}: {error}")]
    Connect {
        /// Where.
        address: SocketAddr,
        /// The system's error.
        error: io::Error,
    },
    /// The TLS handshake failed, for instance because the certificate is not trusted.
    #[error("no TLS with '{host}': {problem}")]
    Tls {
        /// The server's name.
        host: String,
        /// Why.
        problem: String,
    },
    /// The QUIC handshake failed.
    #[error("no QUIC with {address}: {problem}")]
    Quic {
        /// Where.
        address: SocketAddr,
        /// Why.
        problem: String,
    },
    /// The server does not speak the requested HTTP version.
    #[error("the server does not speak {0}")]
    Version(Version),
    /// The connection failed.
    #[error("the connection failed after {received}{} bytes: {problem}", of(*size))]
    Broken {
        /// Bytes of the body received.
        received: u64,
        /// The body's length, if known.
        size: Option<u64>,
        /// Why.
        problem: String,
    },
    /// A status other than success.
    #[error("status {0}")]
    Status(u16),
    /// The response has another range than requested.
    #[error("asked for {asked}, got {got}")]
    Range {
        /// The range requested.
        asked: String,
        /// The range of the response.
        got: String,
    },
    /// The body has another length than announced.
    #[error("got {received} bytes of {size}")]
    Length {
        /// Bytes received.
        received: u64,
        /// Bytes announced.
        size: u64,
    },
    /// Nothing arrived for this long.
    #[error("nothing came for {0}")]
    Timeout(TimeDelta),
    /// The file for the body cannot be written.
    #[error("cannot write '{path}': {1}", path = .0.display())]
    File(PathBuf, io::Error),
    /// The songs cannot be played.
    #[error("{0}")]
    Songs(String),
    /// The size of a song cannot be determined.
    #[error("{url}: {error}")]
    Song {
        /// Its URL.
        url: String,
        /// Why.
        error: Box<Self>,
    },
    /// Interrupted by the user.
    #[error("interrupted")]
    Interrupted,
    /// A thread, socket or other system resource could not be created.
    #[error("cannot start: {0}")]
    System(io::Error),
}

impl ClientError {
    /// The error, with the flag that solves it.
    pub fn explained(&self) -> String {
        let text = self.to_string();
        let is_about = |words: &str| text.contains(words);
        let remedy = if is_about("invalid peer certificate") {
            "; add --ca FILE to trust its issuer, or --insecure to skip the check"
        } else if is_about("http2 error") && is_about("frame with invalid size") {
            "; does the server speak HTTP/2 without TLS? Add --http 1.1"
        } else {
            ""
        };
        format!("{text}{remedy}")
    }

    /// Whether the arguments are wrong, rather than the network or the server.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Url { .. } | Self::Authorities(_) | Self::Songs(_) => true,
            Self::Song { error, .. } => error.is_usage(),
            _ => false,
        }
    }

    /// The error of a connection that failed before any body data.
    pub(crate) fn broken(error: &(dyn Error + 'static)) -> Self {
        Self::Broken { received: 0, size: None, problem: chain(error) }
    }
}

/// An error and its sources, in one line.
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

fn of(size: Option<u64>) -> String {
    size.map_or_else(String::new, |size| format!(" of {size}"))
}
