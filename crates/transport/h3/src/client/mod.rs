//! An HTTP/3 client, usable on any thread.
//!
//! Connections run on the client's worker threads. Requests and responses pass through tokio's channels,
//! which need no runtime.

mod app;
mod body;
mod connection;
mod error;
mod request;
mod tls;

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use noq_proto::{IdleTimeout, TransportConfig, VarInt};
use tokio::sync::oneshot;
use uncork_cc::CcSpec;
use uncork_quic_io::{Config, Identity, ShutdownOptions, Workers};

pub use body::{Body, Chunk};
pub use connection::Connection;
pub use error::ClientError;
pub use tls::Tls;

use app::{App, Command, ConnectRequest};

/// Options for all connections of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientOptions {
    /// Pairs of worker threads, one each for IPv4 and IPv6; connections are distributed over the pairs.
    pub workers: usize,
    /// The idle timeout, also for the handshake.
    pub idle_time: Duration,
    /// The receive window in bytes, per connection and per stream.
    pub receive_window: u32,
    /// Maximum size of a response's head, in bytes.
    pub head_bytes: u64,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            workers: 1,
            idle_time: Duration::from_secs(30),
            receive_window: 2 << 20,
            head_bytes: 64 * 1024,
        }
    }
}

/// An HTTP/3 client with its workers. Clones share them. The workers end when the last clone and all
/// connections are dropped.
#[derive(Clone)]
pub struct Client(Arc<ClientInner>);

struct ClientInner {
    /// Pairs of workers, one for IPv4 and one for IPv6.
    workers: Workers<Command>,
    next: AtomicUsize,
    transport: TransportConfig,
    epoch: Instant,
    has_v6: bool,
}

impl Client {
    /// Starts the workers. Controller times count from `epoch`.
    ///
    /// # Errors
    ///
    /// If a socket or a thread cannot be created.
    pub fn start(options: &ClientOptions, epoch: Instant) -> io::Result<Self> {
        let mut sockets = Vec::new();
        let mut has_v6 = true;
        for _ in 0..options.workers.max(1) {
            sockets.push(UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?);
            if has_v6 {
                match UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)) {
                    Ok(socket) => sockets.push(socket),
                    // A system without IPv6.
                    Err(_) if sockets.len() == 1 => has_v6 = false,
                    Err(error) => return Err(error),
                }
            }
        }
        let identity = Identity::random().map_err(io::Error::other)?;
        let head_bytes = options.head_bytes;
        let workers = Workers::start(sockets, &Config::new(identity), move |mailer| {
            App::new(mailer, head_bytes)
        })?;
        let (next, transport) = (AtomicUsize::new(0), transport(options)?);
        Ok(Self(Arc::new(ClientInner { workers, next, transport, epoch, has_v6 })))
    }

    /// Connects to `remote`. Its certificate must match `server_name`. `cc` controls the little
    /// data that the client sends. Use a different `seed` per connection.
    ///
    /// # Errors
    ///
    /// If the server does not respond, does not speak HTTP/3, or has the wrong certificate.
    pub async fn connect(
        &self,
        remote: SocketAddr,
        server_name: &str,
        (cc, seed): (CcSpec, u64),
        tls: &Tls,
    ) -> Result<Connection, ClientError> {
        let (inner, families) = (&self.0, if self.0.has_v6 { 2 } else { 1 });
        let pairs = inner.workers.count() / families;
        let pair = inner.next.fetch_add(1, Ordering::Relaxed) % pairs;
        let family = usize::from(remote.is_ipv6() && inner.has_v6);
        let crypto = Arc::clone(&tls.0);
        let client = uncork_quic_io::Client::new(crypto, inner.transport.clone(), inner.epoch);
        let (reply, replied) = oneshot::channel();
        let connect = ConnectRequest {
            remote,
            server_name: server_name.to_owned(),
            config: client.begin(cc, seed),
            reply,
        };
        inner.workers.send(pair * families + family, Command(Box::new(connect)));
        let link = replied.await.unwrap_or(Err(ClientError::Ended))?;
        Ok(Connection { link, remote, client: self.clone() })
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Client")
    }
}

/// `H3_NO_ERROR` (RFC 9114 §8.1).
impl Drop for ClientInner {
    fn drop(&mut self) {
        self.workers.shut_down(&ShutdownOptions::at_once(VarInt::from_u32(0x100)));
    }
}

fn transport(options: &ClientOptions) -> io::Result<TransportConfig> {
    let idle = IdleTimeout::try_from(options.idle_time).map_err(io::Error::other)?;
    let mut transport = TransportConfig::default();
    transport.max_idle_timeout(Some(idle));
    transport.stream_receive_window(VarInt::from_u32(options.receive_window));
    transport.receive_window(VarInt::from_u32(options.receive_window));
    // A server opens a control stream, two QPACK streams, and perhaps some of unknown type (grease).
    transport.max_concurrent_uni_streams(VarInt::from_u32(16));
    transport.max_concurrent_bidi_streams(VarInt::from_u32(0));
    Ok(transport)
}
