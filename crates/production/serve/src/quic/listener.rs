//! QUIC listeners and their workers.

use std::fmt;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use noq_proto::{IdleTimeout, MtuDiscoveryConfig, ServerConfig, TransportConfig, VarInt};
use rustls::server::ProducesTickets;
use tokio::runtime;
use uncork_quic_io::{
    Config, Identity, Predecessor, Server, ShutdownOptions, Workers, WorkersHealth,
};

use super::app::App;
use super::tls;
use crate::choice::Chooser;
use crate::error::ServeError;
use crate::identity::Certificates;
use crate::keys::Secret;
use crate::limits::Limits;
use crate::shared::Shared;

/// Bytes that a client may send per stream before the server reads them: requests are small.
const STREAM_WINDOW: u32 = 64 * 1024;
const WINDOW: u32 = 512 * 1024;
/// A client opens its control stream and two QPACK streams, and perhaps some reserved ones (RFC
/// 9114 §6.2).
const UNI_STREAMS: u32 = 16;
/// The stack's idle timeout is longer than the server's by this time, so that the server closes
/// connections first, with an HTTP/3 error code.
const LEEWAY: Duration = Duration::from_secs(10);
/// How long closed connections answer late packets.
const DRAIN: Duration = Duration::from_secs(1);
/// `H3_NO_ERROR` (RFC 9114 §8.1).
pub(super) const NO_ERROR: VarInt = VarInt::from_u32(0x100);

/// `H3_EXCESSIVE_LOAD`.
pub(super) const EXCESSIVE_LOAD: VarInt = VarInt::from_u32(0x107);
/// Connections of a worker beyond its limit, accepted while others are being closed to make room.
const HEADROOM: usize = 64;

/// The state that a listener shares with its workers.
#[derive(Clone)]
pub(crate) struct QuicContext {
    pub(crate) shared: Arc<Shared>,
    /// The listener's name.
    pub(crate) listener: Arc<str>,
    pub(crate) port: u16,
    pub(crate) chooser: Chooser,
    pub(crate) server: Server,
    /// The runtime for blocking disk reads.
    pub(crate) runtime: runtime::Handle,
}

/// Sockets of an address, and the older processes that still have connections on them.
pub(crate) struct Bound {
    pub(crate) address: SocketAddr,
    pub(crate) sockets: Vec<UdpSocket>,
    pub(crate) identity: Identity,
    pub(crate) predecessors: Vec<Predecessor>,
}

/// The workers of an address.
pub(crate) struct Listener {
    workers: Workers<()>,
    predecessors: Arc<[Predecessor]>,
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Listener").field(&self.workers.addresses()).finish()
    }
}

/// The health of a listener's workers.
pub(crate) struct QuicHealth {
    address: Option<SocketAddr>,
    workers: WorkersHealth<()>,
}

impl QuicHealth {
    /// One sentence for each failed worker.
    pub(crate) fn failures(&self) -> Vec<String> {
        let address = self.address.map_or_else(String::new, |address| format!(" on {address}"));
        let failures = self.workers.failures().into_iter();
        failures
            .map(|(worker, reason)| format!("HTTP/3 worker {worker}{address} has failed: {reason}"))
            .collect()
    }
}

/// The QUIC configuration of all listeners.
pub(crate) fn server(
    certificates: Arc<Certificates>,
    tickets: Arc<dyn ProducesTickets>,
    limits: &Limits,
    epoch: Instant,
) -> Result<Server, ServeError> {
    let base = ServerConfig::with_crypto(tls::config(certificates, tickets)?);
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

/// The connection IDs of this process, with keys derived from `secret`.
pub(crate) fn identity(secret: &Secret, generation: u8) -> Result<Identity, ServeError> {
    let identity = Identity::from_secret(secret).map(|it| it.of_generation(generation));
    identity.map_err(|error| ServeError::System("make keys", io::Error::other(error)))
}

/// Sockets that share `address`, one per core.
pub(crate) fn bind(address: SocketAddr) -> io::Result<Vec<UdpSocket>> {
    uncork_quic_io::bind(address, available_parallelism().map_or(1, usize::from))
}

impl Listener {
    /// Starts the workers.
    pub(crate) fn start(
        Bound { sockets, identity, predecessors, .. }: Bound,
        context: QuicContext,
    ) -> Result<Self, ServeError> {
        let failed = |error| ServeError::System("start threads for HTTP/3", error);
        let mut config = Config::new(identity);
        config.predecessors = predecessors.into();
        let predecessors = Arc::clone(&config.predecessors);
        config.server = Some(context.server.base());
        let limits = &context.shared.limits;
        let room = limits.connections.div_ceil(sockets.len().max(1));
        config.limits.connections = room + HEADROOM;
        let make = move |mailer| App::new(context.clone(), room, mailer);
        let workers = Workers::start(sockets, &config, make).map_err(failed)?;
        Ok(Self { workers, predecessors })
    }

    /// Stops reading datagrams, so that another process can read them ([`Workers::give_way`]).
    pub(crate) fn give_way(&self) -> io::Result<Predecessor> {
        self.workers.give_way()
    }

    /// Reads datagrams again.
    pub(crate) fn resume(&self) {
        self.workers.resume();
    }

    /// The older processes from which this one has taken over.
    pub(crate) fn predecessors(&self) -> &[Predecessor] {
        &self.predecessors
    }

    /// The health of all workers.
    pub(crate) fn health(&self) -> QuicHealth {
        let address = self.workers.addresses().first().copied();
        QuicHealth { address, workers: self.workers.health() }
    }

    /// Stops accepting, lets responses finish for up to `patience`, and aborts the rest.
    pub(crate) fn shut_down(&self, patience: Duration) {
        let reason = "the server ends".into();
        self.workers.shut_down(&ShutdownOptions {
            finish: patience,
            code: NO_ERROR,
            reason,
            drain: DRAIN,
        });
    }

    /// Waits until all workers have ended.
    pub(crate) fn join(self) -> Result<(), ServeError> {
        let ended = self.workers.join();
        ended.map(drop).map_err(|error| ServeError::System("serve over HTTP/3", error))
    }
}
