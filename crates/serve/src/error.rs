//! Why nothing is served.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use uncork_cc::CcSpec;
use uncork_policy::{OriginError, PolicyError};

use crate::admin::AdminAddress;

/// What a server cannot start or end with. Printed, it says what and what to do.
#[derive(Debug)]
#[non_exhaustive]
pub enum ServeError {
    /// The directory to serve cannot be opened.
    Root(PathBuf, io::Error),
    /// The kernel cannot keep lookups inside a directory.
    NoOpenat2,
    /// Nothing can listen there.
    Listen(SocketAddr, io::Error),
    /// No datagrams can be received there.
    Datagrams(SocketAddr, io::Error),
    /// The kernel has no such congestion control, or not for everybody.
    Congestion {
        /// The policy that asks for it, if it is one.
        policy: Option<String>,
        /// What it has.
        problem: String,
    },
    /// A file with a policy or a database cannot be read.
    Unreadable(&'static str, PathBuf, io::Error),
    /// A policy cannot be used. [`PolicyError::render`] shows the place.
    Policy(PathBuf, PolicyError),
    /// A database of where clients are cannot be used.
    Database(PathBuf, OriginError),
    /// A certificate or key cannot be used.
    Certificate(PathBuf, String),
    /// No certificate of its own can be made.
    SelfSigned(String),
    /// Operators cannot be listened to there.
    Admin(AdminAddress, io::Error),
    /// They would be beyond this machine, which was not asked for.
    AdminExposed(SocketAddr),
    /// The records cannot be written.
    Records(PathBuf, io::Error),
    /// Records are to go to one file of Parquet.
    RecordsName(PathBuf),
    /// Files of qlog cannot be written there.
    Qlog(PathBuf, io::Error),
    /// Qlog was asked for without HTTP/3.
    QlogWithoutHttp3,
    /// A controller for QUIC was asked for without HTTP/3.
    QuicCcWithoutHttp3(CcSpec),
    /// A listener is to take no connections.
    NoConnections,
    /// Plain HTTP was asked for beyond this machine.
    Plain(SocketAddr),
    /// The system does not allow it.
    System(&'static str, io::Error),
}

impl ServeError {
    /// Whether what was asked for can be nowhere, as opposed to not here.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::Plain(_)
                | Self::RecordsName(_)
                | Self::QlogWithoutHttp3
                | Self::QuicCcWithoutHttp3(_)
                | Self::NoConnections
                | Self::AdminExposed(_)
                | Self::Certificate(..)
                | Self::Unreadable(..)
                | Self::Policy(..)
                | Self::Database(..)
        )
    }
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root(path, error) => {
                write!(f, "cannot serve '{}': {error}; give a directory", path.display())
            }
            Self::NoOpenat2 => f.write_str(
                "this kernel has no openat2, which keeps requests inside the directory: it takes Linux 5.6, \
                 and a seccomp policy that allows it",
            ),
            Self::Listen(address, error) => write!(f, "cannot listen on {address}: {error}"),
            Self::Datagrams(address, error) => {
                write!(f, "cannot listen on {address} over UDP, for HTTP/3: {error}")
            }
            Self::Congestion { policy: None, problem } => f.write_str(problem),
            Self::Congestion { policy: Some(name), problem } => {
                write!(f, "cannot use the policy '{name}': {problem}")
            }
            Self::Unreadable(what, path, error) => {
                write!(f, "cannot read the {what} '{}': {error}", path.display())
            }
            Self::Policy(path, error) => {
                write!(f, "cannot use the policy '{}': {error}", path.display())
            }
            Self::Database(path, error) => write!(f, "cannot use '{}': {error}", path.display()),
            Self::Certificate(path, problem) => {
                write!(f, "cannot use '{}': {problem}; give files in PEM", path.display())
            }
            Self::SelfSigned(problem) => write!(f, "cannot make a certificate: {problem}"),
            Self::Records(path, error) => {
                write!(f, "cannot write records to '{}': {error}", path.display())
            }
            Self::RecordsName(path) => write!(
                f,
                "cannot write records to '{}': Parquet goes to a directory, a file at a time; write \
                 DIR/, or FILE.jsonl for lines of JSON",
                path.display()
            ),
            Self::Qlog(path, error) => {
                write!(f, "cannot write qlog into '{}': {error}", path.display())
            }
            Self::QlogWithoutHttp3 => f.write_str(
                "qlog is of HTTP/3, which is not served: give a certificate and its key, or a self-signed \
                 one for trying it",
            ),
            Self::QuicCcWithoutHttp3(cc) => write!(
                f,
                "'--quic-cc {cc}' needs HTTP/3: give --tls-cert and --tls-key (or --self-signed for a trial), \
                 and no --no-http3"
            ),
            Self::NoConnections => {
                f.write_str("'--connections 0' serves nobody: give at least 1")
            }
            Self::Admin(address, error) => {
                write!(f, "cannot listen for operators on {address}: {error}")
            }
            Self::AdminExposed(address) => write!(
                f,
                "{address} is reachable by others, who could see what is served to whom: listen on \
                 loopback or a Unix socket, or ask for it"
            ),
            Self::Plain(address) => write!(
                f,
                "{address} is reachable by others: give a certificate and its key, a self-signed one for \
                 trying it, or ask for plain HTTP"
            ),
            Self::System(action, error) => write!(f, "cannot {action}: {error}"),
        }
    }
}

impl std::error::Error for ServeError {}
