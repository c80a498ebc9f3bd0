//! Sockets that listen, and their workers.

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

/// Sockets of an address, and whose connections come through them.
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

/// What names the connections of this process, with keys derived from `secret`.
pub(crate) fn identity(secret: &Secret, generation: u8) -> Result<Identity, ServeError> {
    let identity = Identity::from_secret(secret).map(|it| it.of_generation(generation));
    identity.map_err(|error| ServeError::System("make keys", io::Error::other(error)))
}

/// Sockets that share `address`, one for each core.
pub(crate) fn bind(address: SocketAddr) -> io::Result<Vec<UdpSocket>> {
    uncork_quic_io::bind(address, available_parallelism().map_or(1, usize::from))
}

impl Listener {
    /// Serves what comes from then on.
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

    /// Stops reading datagrams, for another process to do so ([`Workers::give_way`]).
    pub(crate) fn give_way(&self) -> io::Result<Predecessor> {
        self.workers.give_way()
    }

    /// Reads datagrams again.
    pub(crate) fn resume(&self) {
        self.workers.resume();
    }

    /// The processes that have given way to this one.
    pub(crate) fn predecessors(&self) -> &[Predecessor] {
        &self.predecessors
    }

    /// Tells whether all workers still work.
    pub(crate) fn health(&self) -> QuicHealth {
        let address = self.workers.addresses().first().copied();
        QuicHealth { address, workers: self.workers.health() }
    }

    /// Accepts no more, lets responses come to their end for up to `patience`, and breaks off the rest.
    pub(crate) fn shut_down(&self, patience: Duration) {
        let reason = "the server ends".into();
        self.workers.shut_down(&ShutdownOptions {
            finish: patience,
            code: NO_ERROR,
            reason,
            drain: DRAIN,
        });
    }

    /// Waits until all of it has ended.
    pub(crate) fn join(self) -> Result<(), ServeError> {
        let ended = self.workers.join();
        ended.map(drop).map_err(|error| ServeError::System("serve over HTTP/3", error))
    }
}
