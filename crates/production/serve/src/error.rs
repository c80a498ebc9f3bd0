//! Errors that prevent a server from starting.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use thiserror::Error;
use uncork_cc::CcSpec;
use uncork_policy::{OriginError, PolicyError, SignatureError, TableError};
use uncork_private_files::releases::ReleaseError;
use uncork_records::RecordsError;

use crate::admin::AdminAddress;

/// Why a server cannot start. The message names the remedy.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The directory to serve cannot be opened.
    #[error("cannot serve '{path}': {1}; give a directory", path = .0.display())]
    Root(PathBuf, io::Error),
    /// The kernel lacks `openat2`, which confines lookups to a directory.
    #[error(
        "this kernel has no openat2, which keeps requests inside the directory: Linux 5.6 has it; a seccomp \
         policy must allow it, which RestrictSUIDSGID= and DynamicUser= of systemd do not"
    )]
    NoOpenat2,
    /// A socket of systemd's cannot be used.
    #[error("cannot use the sockets that systemd has opened (LISTEN_FDS): {0}")]
    Activation(String),
    /// The process cannot become another user.
    #[error(
        "cannot become '{0}' for --user: {1}; start as root, or leave --user out and let systemd's User= do it"
    )]
    User(String, io::Error),
    /// The TCP address cannot be listened on.
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, io::Error),
    /// The UDP address cannot be bound.
    #[error("cannot listen on {0} over UDP, for HTTP/3: {1}")]
    Datagrams(SocketAddr, io::Error),
    /// The kernel lacks the congestion control, or does not allow this user to choose it.
    #[error("{}{problem}", prefix(policy.as_deref()))]
    Congestion {
        /// The policy that asks for it, if a policy does.
        policy: Option<String>,
        /// The reason and the remedy.
        problem: String,
    },
    /// A policy or database file cannot be read.
    #[error("cannot read the {0} '{path}': {2}", path = .1.display())]
    Unreadable(&'static str, PathBuf, io::Error),
    /// A policy is invalid. [`PolicyError::render`] shows the place.
    #[error("cannot use the policy '{path}': {1}", path = .0.display())]
    Policy(PathBuf, PolicyError),
    /// A policy's table of networks is invalid.
    #[error("cannot use the table of networks '{path}': {1}", path = .0.display())]
    Table(PathBuf, TableError),
    /// A policy is not signed as it must be.
    #[error("cannot use the policy '{path}': {1}", path = .0.display())]
    Signature(PathBuf, SignatureError),
    /// A signed policy is older than one that was accepted.
    #[error("cannot use the policy '{path}': {1}", path = .0.display())]
    Release(PathBuf, Box<ReleaseError>),
    /// A database of client locations is invalid.
    #[error("cannot use '{path}': {1}", path = .0.display())]
    Database(PathBuf, OriginError),
    /// A certificate or key is invalid.
    #[error("cannot use '{path}': {1}; give files in PEM", path = .0.display())]
    Certificate(PathBuf, String),
    /// A file of keys is invalid.
    #[error(
        "cannot use the keys '{path}': {1}; give --keys a directory with files that only this server's user may read, \
         or that does not exist yet",
        path = .0.display()
    )]
    Keys(PathBuf, String),
    /// The sockets of the running server cannot be taken over.
    #[error(
        "cannot take over from the server at '{path}': {1}; it keeps running; stop it, or leave --handover out",
        path = .0.display()
    )]
    TakeOver(PathBuf, io::Error),
    /// The handover socket cannot be created.
    #[error("cannot listen for handovers on '{path}': {1}", path = .0.display())]
    Handover(PathBuf, io::Error),
    /// Another process failed to take over.
    #[error("handover failed: {0}; keeping the sockets")]
    NotTaken(io::Error),
    /// Creating a self-signed certificate failed.
    #[error("cannot make a certificate: {0}")]
    SelfSigned(String),
    /// The admin endpoint cannot listen on its address.
    #[error("cannot listen for operators on {0}: {1}")]
    Admin(AdminAddress, io::Error),
    /// The admin endpoint would be reachable from other machines, which the configuration does not
    /// allow.
    #[error(
        "{0} is reachable by others, who could see what is served to whom: listen on loopback or a Unix socket, \
         or add --admin-anywhere"
    )]
    AdminExposed(SocketAddr),
    /// Records cannot be written.
    #[error(transparent)]
    Records(#[from] RecordsError),
    /// The access log cannot be written.
    #[error("cannot write the access log '{path}': {1}", path = .0.display())]
    AccessLog(PathBuf, io::Error),
    /// Qlog files cannot be written to the directory.
    #[error("cannot write qlog into '{path}': {1}", path = .0.display())]
    Qlog(PathBuf, io::Error),
    /// Qlog needs HTTP/3.
    #[error(
        "--qlog needs HTTP/3: give --tls-cert and --tls-key (or --self-signed for a trial), and no --no-http3"
    )]
    QlogWithoutHttp3,
    /// A QUIC controller needs HTTP/3.
    #[error(
        "'--quic-cc {0}' needs HTTP/3: give --tls-cert and --tls-key (or --self-signed for a trial), and no \
         --no-http3"
    )]
    QuicCcWithoutHttp3(CcSpec),
    /// Only a host has a certificate.
    #[error(
        "the host '{0}' has a certificate, but the server has none for clients that ask for another name: give \
         --tls-cert and --tls-key"
    )]
    HostCertificateAlone(String),
    /// Requests would be redirected to HTTPS, which is not served.
    #[error(
        "--redirect-http needs TLS: give --tls-cert and --tls-key, or --self-signed for a trial"
    )]
    RedirectWithoutTls,
    /// A setting cannot change while it serves.
    #[error(
        "`{0}` cannot change while the server runs: restart it, or start another one with --handover"
    )]
    NeedsRestart(&'static str),
    /// The limit of connections is zero.
    #[error("'--max-connections 0' serves no one: give at least 1")]
    NoConnections,
    /// Plain HTTP would be reachable from other machines, which the configuration does not allow.
    #[error(
        "{0} is reachable by others: give --tls-cert and --tls-key, or --self-signed for a trial, or --plain for \
         HTTP without TLS"
    )]
    Plain(SocketAddr),
    /// An operation of the system failed.
    #[error("cannot {0}: {1}")]
    System(&'static str, io::Error),
}

impl ServeError {
    /// Whether the configuration is invalid on every machine, not only on this one.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::Plain(_)
                | Self::Records(RecordsError::OneParquetFile(_))
                | Self::QlogWithoutHttp3
                | Self::QuicCcWithoutHttp3(_)
                | Self::NoConnections
                | Self::HostCertificateAlone(_)
                | Self::RedirectWithoutTls
                | Self::AdminExposed(_)
                | Self::Certificate(..)
                | Self::Unreadable(..)
                | Self::Policy(..)
                | Self::Signature(..)
                | Self::Release(..)
                | Self::Table(..)
                | Self::Database(..)
        )
    }
}

fn prefix(policy: Option<&str>) -> String {
    policy.map_or_else(String::new, |name| format!("cannot use the policy '{name}': "))
}
