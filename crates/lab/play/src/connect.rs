//! Connection setup, with the duration of each step.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio_rustls::TlsConnector;
use uncork_units::TimeDelta;

use crate::clock::{instant, span};
use crate::connection::{Connection, Version};
use crate::error::{ClientError, chain};
use crate::eyeballs;
use crate::quic::Quic;
use crate::target::Target;
use crate::tls::{self, Trust};

/// HTTP/2 receive windows per stream and per connection, in bytes. They exceed the bandwidth-delay product
/// of any measured path, so the path is the limit.
const WINDOWS: (u32, u32) = (16 << 20, 64 << 20);

/// Connection settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectSpec {
    /// The HTTP version; `None` uses the server's preference, or HTTP/1.1 without TLS.
    pub version: Option<Version>,
    /// The trusted certificates.
    pub trust: Trust,
    /// If not empty, connect to these addresses instead of resolving the host name.
    pub to: Vec<SocketAddr>,
    /// Timeout for each step without progress, and for each address to answer.
    pub patience: TimeDelta,
}

impl Default for ConnectSpec {
    /// The server's preferred version, the system's certificate authorities, 30 s.
    fn default() -> Self {
        let patience = TimeDelta::from_secs(30);
        Self { version: None, trust: Trust::System, to: Vec::new(), patience }
    }
}

/// The peer of a connection, and the duration of each setup step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// The peer's address.
    pub peer: SocketAddr,
    /// Name resolution.
    pub resolve: TimeDelta,
    /// TCP or QUIC handshake, including attempts at other addresses.
    pub connect: TimeDelta,
    /// TLS handshake over TCP, if any.
    pub tls: Option<TimeDelta>,
}

/// Opens connections.
#[derive(Clone, Debug)]
pub(crate) struct Connector {
    spec: ConnectSpec,
    tls: Option<Arc<rustls::ClientConfig>>,
    quic: Option<Quic>,
}

impl Connector {
    /// Creates a connector for `targets`. Certificates are loaded only if one of them needs TLS.
    pub(crate) fn new(spec: &ConnectSpec, targets: &[Target]) -> Result<Self, ClientError> {
        let is_quic = spec.version == Some(Version::Http3);
        let protocols: &[&[u8]] = match spec.version {
            None => &[b"h2", b"http/1.1"],
            Some(Version::Http1) => &[b"http/1.1"],
            Some(Version::Http2) => &[b"h2"],
            Some(Version::Http3) => &[b"h3"],
        };
        if let Some(plain) = targets.iter().find(|target| !target.is_tls).filter(|_| is_quic) {
            let problem = "HTTP/3 is always encrypted: write https".to_owned();
            return Err(ClientError::Url { url: plain.to_string(), problem });
        }
        let needs_tls = targets.iter().any(|target| target.is_tls);
        let tls = needs_tls.then(|| tls::config(&spec.trust, protocols)).transpose()?;
        let quic = tls.as_ref().filter(|_| is_quic).map(Quic::start).transpose()?;
        Ok(Self { spec: spec.clone(), tls: tls.map(Arc::new), quic })
    }

    /// Runs `work` with the timeout.
    pub(crate) async fn with_timeout<T>(
        &self,
        work: impl Future<Output = Result<T, ClientError>>,
    ) -> Result<T, ClientError> {
        let patience = Duration::from_nanos(self.spec.patience.as_nanos());
        let late = |_| Err(ClientError::Timeout(self.spec.patience));
        tokio::time::timeout(patience, work).await.unwrap_or_else(late)
    }

    /// Opens a connection to the origin of `target`.
    pub(crate) async fn connect(
        &self,
        target: &Target,
    ) -> Result<(Connection, Setup), ClientError> {
        let began = instant();
        let addresses = self.with_timeout(self.resolve(target)).await?;
        let resolve = span(began.elapsed());
        if let Some(quic) = &self.quic {
            let dial = |address| quic.connect(address, &target.host);
            let (connection, peer) = self.connect_first(target, &addresses, dial).await?;
            let connect = span(began.elapsed()) - resolve;
            return Ok((connection, Setup { peer, resolve, connect, tls: None }));
        }
        let (stream, peer) = self.connect_first(target, &addresses, dial).await?;
        let connect = span(began.elapsed()) - resolve;
        // Nagle's algorithm would delay the request.
        stream.set_nodelay(true).map_err(ClientError::System)?;
        let Some(config) = self.tls.as_ref().filter(|_| target.is_tls) else {
            let version = self.spec.version.unwrap_or(Version::Http1);
            let connection = self.with_timeout(start_http(version, stream)).await?;
            return Ok((connection, Setup { peer, resolve, connect, tls: None }));
        };
        let secured = instant();
        let stream = self.with_timeout(encrypt(Arc::clone(config), target, stream)).await?;
        let tls = Some(span(secured.elapsed()));
        let version = match stream.get_ref().1.alpn_protocol() {
            Some(b"h2") => Version::Http2,
            _ => Version::Http1,
        };
        if let Some(wanted) = self.spec.version.filter(|wanted| *wanted != version) {
            return Err(ClientError::Version(wanted));
        }
        let connection = self.with_timeout(start_http(version, stream)).await?;
        Ok((connection, Setup { peer, resolve, connect, tls }))
    }

    async fn resolve(&self, target: &Target) -> Result<Vec<SocketAddr>, ClientError> {
        if !self.spec.to.is_empty() {
            return Ok(self.spec.to.clone());
        }
        let failed = |error| ClientError::Resolve { host: target.host.clone(), error };
        let found = lookup_host((target.host.as_str(), target.port)).await.map_err(failed)?;
        let found: Vec<_> = found.collect();
        if found.is_empty() { Err(no_addresses(target)) } else { Ok(found) }
    }

    /// Connects to one of `addresses` with `dial`. Returns the connection and its address.
    async fn connect_first<T, D: Future<Output = Result<T, ClientError>>>(
        &self,
        target: &Target,
        addresses: &[SocketAddr],
        dial: impl Fn(SocketAddr) -> D,
    ) -> Result<(T, SocketAddr), ClientError> {
        let made = eyeballs::race(addresses, |address| self.with_timeout(dial(address))).await;
        made.unwrap_or_else(|| Err(no_addresses(target)))
    }
}

fn no_addresses(target: &Target) -> ClientError {
    let error = io::Error::other("it has none");
    ClientError::Resolve { host: target.host.clone(), error }
}

async fn dial(address: SocketAddr) -> Result<TcpStream, ClientError> {
    let stream = TcpStream::connect(address).await;
    stream.map_err(|error| ClientError::Connect { address, error })
}

async fn encrypt(
    config: Arc<rustls::ClientConfig>,
    target: &Target,
    stream: TcpStream,
) -> Result<tokio_rustls::client::TlsStream<TcpStream>, ClientError> {
    let failed = |problem| ClientError::Tls { host: target.host.clone(), problem };
    let name = ServerName::try_from(target.host.clone());
    let name = name.map_err(|error| failed(error.to_string()))?;
    let encrypted = TlsConnector::from(config).connect(name, stream).await;
    encrypted.map_err(|error| failed(chain(&error)))
}

/// Starts HTTP on `stream`; the connection's task runs until its handles are dropped.
async fn start_http<S>(version: Version, stream: S) -> Result<Connection, ClientError>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let broken = |error: hyper::Error| ClientError::broken(&error);
    let stream = TokioIo::new(stream);
    // Pending requests receive errors; the task's own result is not needed.
    match version {
        Version::Http1 => {
            let (sender, connection) = http1::handshake(stream).await.map_err(broken)?;
            tokio::spawn(async { drop(connection.await) });
            Ok(Connection::Http1(sender))
        }
        Version::Http2 | Version::Http3 => {
            let mut builder = http2::Builder::new(TokioExecutor::new());
            builder.initial_stream_window_size(WINDOWS.0);
            builder.initial_connection_window_size(WINDOWS.1);
            let (sender, connection) = builder.handshake(stream).await.map_err(broken)?;
            tokio::spawn(async { drop(connection.await) });
            Ok(Connection::Http2(sender))
        }
    }
}
