//! Errors of a server that cannot start.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use thiserror::Error;
use uncork_cc::CcSpec;
use uncork_policy::{OriginError, PolicyError};
use uncork_records::RecordsError;

use crate::admin::AdminAddress;

/// Why a server cannot start. The message names the remedy.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The directory to serve cannot be opened.
    #[error("cannot serve '{path}': {1}; give a directory", path = .0.display())]
    Root(PathBuf, io::Error),
    /// The kernel cannot keep lookups inside a directory.
    #[error(
        "this kernel has no openat2, which keeps requests inside the directory: Linux 5.6 has it; a seccomp \
         policy must allow it"
    )]
    NoOpenat2,
    /// Nothing can listen there.
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, io::Error),
    /// No datagrams can be received there.
    #[error("cannot listen on {0} over UDP, for HTTP/3: {1}")]
    Datagrams(SocketAddr, io::Error),
    /// The kernel has no such congestion control, or does not let this user choose it.
    #[error("{}{problem}", prefix(policy.as_deref()))]
    Congestion {
        /// The policy that asks for it, if one does.
        policy: Option<String>,
        /// Why not, and what to do.
        problem: String,
    },
    /// A file with a policy or a database cannot be read.
    #[error("cannot read the {0} '{path}': {2}", path = .1.display())]
    Unreadable(&'static str, PathBuf, io::Error),
    /// A policy cannot be used. [`PolicyError::render`] shows the place.
    #[error("cannot use the policy '{path}': {1}", path = .0.display())]
    Policy(PathBuf, PolicyError),
    /// A database of where clients are cannot be used.
    #[error("cannot use '{path}': {1}", path = .0.display())]
    Database(PathBuf, OriginError),
    /// A certificate or key cannot be used.
    #[error("cannot use '{path}': {1}; give files in PEM", path = .0.display())]
    Certificate(PathBuf, String),
    /// A file of keys cannot be used.
    #[error(
        "cannot use the keys '{path}': {1}; give --keys a directory whose files only this server's user may read, \
         or that does not exist yet",
        path = .0.display()
    )]
    Keys(PathBuf, String),
    /// The process that serves cannot be taken over.
    #[error(
        "cannot take over from the server at '{path}': {1}; it goes on. Stop it, or leave --handover out",
        path = .0.display()
    )]
    TakeOver(PathBuf, io::Error),
    /// Handovers cannot be asked for there.
    #[error("cannot listen for handovers on '{path}': {1}", path = .0.display())]
    Handover(PathBuf, io::Error),
    /// Another process could not take over.
    #[error("another process asked for the sockets, but does not serve: {0}; this one goes on")]
    NotTaken(io::Error),
    /// A self-signed certificate cannot be made.
    #[error("cannot make a certificate: {0}")]
    SelfSigned(String),
    /// The admin endpoint cannot listen there.
    #[error("cannot listen for operators on {0}: {1}")]
    Admin(AdminAddress, io::Error),
    /// The admin endpoint would be reachable from other machines, which was not asked for.
    #[error(
        "{0} is reachable by others, who could see what is served to whom: listen on loopback or a Unix socket, \
         or add --admin-anywhere"
    )]
    AdminExposed(SocketAddr),
    /// Records cannot go where they were to go.
    #[error(transparent)]
    Records(#[from] RecordsError),
    /// Files of qlog cannot be written there.
    #[error("cannot write qlog into '{path}': {1}", path = .0.display())]
    Qlog(PathBuf, io::Error),
    /// Qlog was asked for without HTTP/3.
    #[error(
        "--qlog needs HTTP/3: give --tls-cert and --tls-key (or --self-signed for a trial), and no --no-http3"
    )]
    QlogWithoutHttp3,
    /// A controller for QUIC was asked for without HTTP/3.
    #[error(
        "'--quic-cc {0}' needs HTTP/3: give --tls-cert and --tls-key (or --self-signed for a trial), and no \
         --no-http3"
    )]
    QuicCcWithoutHttp3(CcSpec),
    /// A listener is to take no connections.
    #[error("'--connections 0' serves nobody: give at least 1")]
    NoConnections,
    /// Plain HTTP would be reachable from other machines, which was not asked for.
    #[error(
        "{0} is reachable by others: give --tls-cert and --tls-key, or --self-signed for a trial, or --plain for \
         HTTP without TLS"
    )]
    Plain(SocketAddr),
    /// The system does not allow it.
    #[error("cannot {0}: {1}")]
    System(&'static str, io::Error),
}

impl ServeError {
    /// Whether the request is wrong on every machine, not only on this one.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::Plain(_)
                | Self::Records(RecordsError::OneParquetFile(_))
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

fn prefix(policy: Option<&str>) -> String {
    policy.map_or_else(String::new, |name| format!("cannot use the policy '{name}': "))
}
