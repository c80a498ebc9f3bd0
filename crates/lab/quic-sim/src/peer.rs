//! One end of a connection, without its application.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Instant;

use bytes::BytesMut;
use noq_proto::{
    Connection, ConnectionHandle, ConnectionId, DatagramEvent, EcnCodepoint, Endpoint,
    EndpointConfig, FourTuple, HashedConnectionIdGenerator, ServerConfig, TransportConfig, VarInt,
};
use uncork_quic::Handle;
use uncork_sim::{FlowSpec, RunSpec};
use uncork_units::Rng;

use crate::address::SERVER;

/// Datagrams per call; all are sent at the same instant.
const BATCH: NonZeroUsize = NonZeroUsize::new(32).expect("more than none");
/// The send buffer, large enough never to limit the sender.
const SEND_BUFFER: u64 = 64 << 20;

/// One end of a connection.
pub(crate) struct Peer {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    /// The configuration for a new connection; `None` refuses it.
    accepts: Option<Arc<ServerConfig>>,
    buffer: Vec<u8>,
}

/// A datagram to send.
pub(crate) struct OutgoingDatagram {
    pub(crate) data: Vec<u8>,
    pub(crate) destination: SocketAddr,
    pub(crate) ecn: Option<EcnCodepoint>,
}

/// The receive windows of an end at first, in bytes. That of a stream cannot change later.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceiveWindows {
    stream: u64,
    connection: u64,
}

impl ReceiveWindows {
    pub(crate) const WIDE_OPEN: Self =
        Self { stream: FlowSpec::WIDE_OPEN, connection: FlowSpec::WIDE_OPEN };

    /// Those of a flow's client: the stream's window is the largest at any time, so that only the
    /// connection's limits.
    pub(crate) fn of(run: &RunSpec, flow: &FlowSpec) -> Self {
        let later = run.receive_window_steps(flow).iter().map(|step| step.value);
        let connection = flow.receive_window;
        Self { stream: later.fold(connection, u64::max), connection }
    }
}

/// The transport parameters of both ends.
pub(crate) fn transport(handle: &Handle, windows: ReceiveWindows) -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport.congestion_controller_factory(handle.factory());
    // The run ends the connections itself.
    transport.max_idle_timeout(None);
    let [stream, connection] =
        [windows.stream, windows.connection].map(|it| VarInt::from_u64(it).unwrap_or(VarInt::MAX));
    transport.stream_receive_window(stream).receive_window(connection).send_window(SEND_BUFFER);
    transport.datagram_receive_buffer_size(None);
    transport
}

impl Peer {
    fn new(rng: &mut Rng, accepts: Option<Arc<ServerConfig>>) -> Self {
        let mut config = EndpointConfig::new(Arc::new(NoResets));
        let mut seed = [0; 32];
        seed.chunks_mut(8).for_each(|part| part.copy_from_slice(&rng.next_u64().to_le_bytes()));
        config.rng_seed(Some(seed));
        let key = rng.next_u64();
        config
            .cid_generator(Arc::new(move || Box::new(HashedConnectionIdGenerator::from_key(key))));
        let endpoint = Endpoint::new(Arc::new(config), accepts.clone(), true);
        Self { endpoint, connection: None, accepts, buffer: Vec::new() }
    }

    /// A server that takes one connection.
    pub(crate) fn server(rng: &mut Rng, config: ServerConfig) -> Self {
        Self::new(rng, Some(Arc::new(config)))
    }

    /// A client that connects.
    pub(crate) fn client(
        rng: &mut Rng,
        now: Instant,
        mut config: noq_proto::ClientConfig,
        name: &str,
    ) -> Self {
        let mut peer = Self::new(rng, None);
        let id = rng.next_u64().to_le_bytes();
        config.initial_dst_cid_provider(Arc::new(move || ConnectionId::new(&id)));
        peer.connection = peer.endpoint.connect(now, config, SERVER, name).ok();
        peer
    }

    pub(crate) fn connection(&mut self) -> Option<&mut Connection> {
        self.connection.as_mut().map(|(_, connection)| connection)
    }

    /// The next deadline if no datagram arrives before.
    pub(crate) fn timeout(&self) -> Option<Instant> {
        self.connection.as_ref().and_then(|(_, connection)| connection.poll_timeout())
    }

    /// Processes a datagram that arrives from `source`.
    pub(crate) fn receive(
        &mut self,
        now: Instant,
        source: SocketAddr,
        data: &[u8],
        ecn: Option<EcnCodepoint>,
    ) {
        let path = FourTuple::from_remote(source);
        let data = BytesMut::from(data);
        self.buffer.clear();
        match self.endpoint.handle(now, path, ecn, data, &mut self.buffer) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some(connection) = self.connection() {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                let accepts = self.accepts.clone();
                let accepted = self.endpoint.accept(incoming, now, &mut self.buffer, accepts);
                self.connection = accepted.ok();
            }
            // The reply to a packet of a refused or closed connection.
            Some(DatagramEvent::Response(_)) | None => {}
        }
    }

    /// Handles expired timers.
    pub(crate) fn expire(&mut self, now: Instant) {
        if let Some(connection) = self.connection()
            && connection.poll_timeout().is_some_and(|due| due <= now)
        {
            connection.handle_timeout(now);
        }
        let Self { endpoint, connection: Some((handle, connection)), .. } = self else { return };
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
    }

    /// Sends what can be sent now, at most `batches`.
    pub(crate) fn send(
        &mut self,
        now: Instant,
        batches: usize,
        mut leave: impl FnMut(OutgoingDatagram),
    ) {
        let Self { connection: Some((_, connection)), buffer, .. } = self else { return };
        for _ in 0..batches {
            buffer.clear();
            let Some(sent) = connection.poll_transmit(now, BATCH, buffer) else { return };
            let size = sent.segment_size.unwrap_or(sent.size).max(1);
            for data in buffer[..sent.size.min(buffer.len())].chunks(size) {
                let destination = sent.destination;
                leave(OutgoingDatagram { data: data.to_vec(), destination, ecn: sent.ecn });
            }
        }
    }
}

/// A key for stateless resets. Simulated hosts never send any.
struct NoResets;

impl noq_proto::crypto::HmacKey for NoResets {
    fn sign(&self, _: &[u8], signature: &mut [u8]) {
        signature.fill(0);
    }

    fn signature_len(&self) -> usize {
        32
    }

    fn verify(&self, _: &[u8], _: &[u8]) -> Result<(), noq_proto::crypto::CryptoError> {
        Err(noq_proto::crypto::CryptoError)
    }
}
