//! Sockets that listen, and their workers.

use std::fmt;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use noq_proto::{IdleTimeout, MtuDiscoveryConfig, ServerConfig, TransportConfig, VarInt};
use tokio::runtime;
use uncork_quic_io::{Config, Identity, Server, ShutdownOptions, Workers, WorkersHealth};

use super::app::App;
use super::tls;
use crate::choice::Chooser;
use crate::error::ServeError;
use crate::identity::Certificates;
use crate::limits::Limits;
use crate::shared::Shared;

/// What a client may send before it is taken: requests are small.
const STREAM_WINDOW: u32 = 64 * 1024;
const WINDOW: u32 = 512 * 1024;
/// A client opens its control stream and two of QPACK's, and perhaps some to no purpose (RFC 9114 §6.2).
const UNI_STREAMS: u32 = 16;
/// How much longer the stack waits than the server does, which closes connections in a way that clients
/// understand.
const LEEWAY: Duration = Duration::from_secs(10);
/// For how long closed connections answer late packets.
const DRAIN: Duration = Duration::from_secs(1);
/// `H3_NO_ERROR` (RFC 9114 §8.1).
pub(super) const NO_ERROR: VarInt = VarInt::from_u32(0x100);

/// `H3_EXCESSIVE_LOAD`.
pub(super) const EXCESSIVE_LOAD: VarInt = VarInt::from_u32(0x107);
/// Connections of a worker beyond its limit, for which others are about to end.
const HEADROOM: usize = 64;

/// What a listener gives to its workers.
#[derive(Clone)]
pub(crate) struct QuicContext {
    pub(crate) shared: Arc<Shared>,
    /// Its name.
    pub(crate) listener: Arc<str>,
    pub(crate) chooser: Chooser,
    pub(crate) server: Server,
    /// Where disks are waited for.
    pub(crate) runtime: runtime::Handle,
}

/// The workers of an address.
pub(crate) struct Listener(Workers<()>);

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Listener").field(&self.0.addresses()).finish()
    }
}

/// Whether the workers of a listener still work.
pub(crate) struct QuicHealth {
    address: Option<SocketAddr>,
    workers: WorkersHealth<()>,
}

impl QuicHealth {
    /// A sentence for each worker that has failed.
    pub(crate) fn failures(&self) -> Vec<String> {
        let address = self.address.map_or_else(String::new, |address| format!(" on {address}"));
        let failures = self.workers.failures().into_iter();
        failures
            .map(|(worker, reason)| format!("HTTP/3 worker {worker}{address} has failed: {reason}"))
            .collect()
    }
}

/// What connections of all listeners have in common.
pub(crate) fn server(
    certificates: Arc<Certificates>,
    limits: &Limits,
    epoch: Instant,
) -> Result<Server, ServeError> {
    let base = ServerConfig::with_crypto(tls::config(certificates)?);
    Ok(Server::new(base, transport(limits), epoch))
}

fn transport(limits: &Limits) -> TransportConfig {
    let patience = limits.head_time.max(limits.idle_time).max(limits.stall_time) + LEEWAY;
    let mut transport = TransportConfig::default();
    transport.max_idle_timeout(IdleTimeout::try_from(patience).ok());
    transport.max_concurrent_bidi_streams(VarInt::from_u32(limits.streams));
    transport.max_concurrent_uni_streams(VarInt::from_u32(UNI_STREAMS));
    transport.stream_receive_window(VarInt::from_u32(STREAM_WINDOW));
    transport.receive_window(VarInt::from_u32(WINDOW));
    transport.datagram_receive_buffer_size(None);
    transport.mtu_discovery_config(Some(MtuDiscoveryConfig::default()));
    transport
}

/// Sockets that share `address`, one for each core.
pub(crate) fn bind(address: SocketAddr) -> io::Result<Vec<UdpSocket>> {
    uncork_quic_io::bind(address, available_parallelism().map_or(1, usize::from))
}

impl Listener {
    /// Serves what comes from then on.
    pub(crate) fn start(sockets: Vec<UdpSocket>, context: QuicContext) -> Result<Self, ServeError> {
        let failed = |error| ServeError::System("start threads for HTTP/3", error);
        let identity = Identity::random().map_err(|error| failed(io::Error::other(error)))?;
        let mut config = Config::new(identity);
        config.server = Some(context.server.base());
        let limits = &context.shared.limits;
        let room = limits.connections.div_ceil(sockets.len().max(1));
        config.limits.connections = room + HEADROOM;
        let make = move |mailer| App::new(context.clone(), room, mailer);
        Workers::start(sockets, &config, make).map(Self).map_err(failed)
    }

    /// Tells whether all workers still work.
    pub(crate) fn health(&self) -> QuicHealth {
        let address = self.0.addresses().first().copied();
        QuicHealth { address, workers: self.0.health() }
    }

    /// Accepts no more, lets responses come to their end for up to `patience`, and breaks off the rest.
    pub(crate) fn shut_down(&self, patience: Duration) {
        let reason = "the server ends".into();
        self.0.shut_down(&ShutdownOptions {
            finish: patience,
            code: NO_ERROR,
            reason,
            drain: DRAIN,
        });
    }

    /// Waits until all of it has ended.
    pub(crate) fn join(self) -> Result<(), ServeError> {
        let ended = self.0.join();
        ended.map(drop).map_err(|error| ServeError::System("serve over HTTP/3", error))
    }
}
