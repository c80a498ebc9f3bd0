//! A quinn client and server in virtual time, with a bottleneck towards the server.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, EcnCodepoint, Endpoint,
    EndpointConfig, Event, ServerConfig, StreamEvent, StreamId, TransportConfig,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use uncork_cc::{CcSpec, Snapshot};

use crate::adapter::{Adapter, Factory};

const NAME: &str = "server.example";
const RTT: Duration = Duration::from_millis(40);
const BYTES_PER_SECOND: u64 = 2_500_000;
/// One bandwidth-delay product.
const QUEUE: u64 = 100_000;
const CLIENT: usize = 0;
const SERVER: usize = 1;

type Error = Box<dyn std::error::Error>;

struct Datagram {
    to: usize,
    data: Vec<u8>,
    ecn: Option<EcnCodepoint>,
}

struct Peer {
    endpoint: Endpoint,
    address: SocketAddr,
    connection: Option<(ConnectionHandle, Connection)>,
}

struct Pair {
    now: Instant,
    peers: [Peer; 2],
    /// Datagrams in flight, by arrival time and serial number.
    in_flight: BTreeMap<(Instant, u64), Datagram>,
    serial: u64,
    link_free: Instant,
    dropped: u64,
    received: u64,
}

/// The result of a transfer.
pub(crate) struct Report {
    pub(crate) seconds: f64,
    pub(crate) dropped: u64,
    pub(crate) snapshot: Snapshot,
}

fn configs(spec: CcSpec) -> Result<(ClientConfig, ServerConfig), Error> {
    let certified = rcgen::generate_simple_self_signed(vec![NAME.into()])?;
    let certificate = CertificateDer::from(certified.cert.der().to_vec());
    let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der())?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)?;
    let server = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate)?;
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut client = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    let mut transport = TransportConfig::default();
    transport.congestion_controller_factory(Arc::new(Factory { spec, seed: 1 }));
    client.transport_config(Arc::new(transport));
    Ok((client, server))
}

/// Sends `bytes` from the client to the server, under the controller that `spec` names.
#[allow(clippy::disallowed_methods, reason = "an Instant can only be had from the clock")]
pub(crate) fn transfer(spec: CcSpec, bytes: u64) -> Result<Report, Error> {
    let (client, server) = configs(spec)?;
    let start = Instant::now();
    let peer = |address: &str, config| -> Result<Peer, Error> {
        let endpoint = Endpoint::new(Arc::new(EndpointConfig::default()), config, true, None);
        Ok(Peer { endpoint, address: address.parse()?, connection: None })
    };
    let peers = [peer("192.0.2.1:4433", None)?, peer("192.0.2.2:443", Some(Arc::new(server)))?];
    let mut pair = Pair {
        now: start,
        peers,
        in_flight: BTreeMap::new(),
        serial: 0,
        link_free: start,
        dropped: 0,
        received: 0,
    };
    let to = pair.peers[SERVER].address;
    pair.peers[CLIENT].connection =
        Some(pair.peers[CLIENT].endpoint.connect(start, client, to, NAME)?);
    pair.run(start + Duration::from_mins(1), bytes)?;
    let client = pair.connection(CLIENT).ok_or("the client has no connection")?;
    let adapter = client.congestion_state().clone_box().into_any().downcast::<Adapter>();
    let snapshot = adapter.map_err(|_| "another controller")?.snapshot();
    let seconds = (pair.now - start).as_secs_f64();
    Ok(Report { seconds, dropped: pair.dropped, snapshot })
}

impl Pair {
    fn connection(&mut self, peer: usize) -> Option<&mut Connection> {
        self.peers[peer].connection.as_mut().map(|(_, connection)| connection)
    }

    fn run(&mut self, deadline: Instant, bytes: u64) -> Result<(), Error> {
        let mut upload = None;
        let mut unsent = bytes;
        while self.received < bytes {
            self.write(&mut upload, &mut unsent)?;
            self.send();
            let timers = [CLIENT, SERVER].map(|peer| self.connection(peer)?.poll_timeout());
            let arrival = self.in_flight.keys().next().map(|(time, _)| *time);
            let next = timers.into_iter().flatten().chain(arrival).min();
            self.now = next.filter(|next| *next < deadline).ok_or("the transfer stalls")?;
            self.expire();
            while let Some(entry) = self.in_flight.first_entry() {
                if entry.key().0 > self.now {
                    break;
                }
                let datagram = entry.remove();
                self.deliver(&datagram);
            }
            self.work()?;
        }
        Ok(())
    }

    /// Writes the client's data until quinn's buffer is full.
    fn write(&mut self, upload: &mut Option<StreamId>, unsent: &mut u64) -> Result<(), Error> {
        static ZEROS: [u8; 1 << 16] = [0; 1 << 16];
        let Some(client) = self.connection(CLIENT) else { return Ok(()) };
        if client.is_handshaking() {
            return Ok(());
        }
        let id = match *upload {
            Some(id) => id,
            None => *upload.insert(client.streams().open(Dir::Uni).ok_or("no stream")?),
        };
        while *unsent > 0 {
            let some = (*unsent).min(ZEROS.len() as u64) as usize;
            let Ok(written) = client.send_stream(id).write(&ZEROS[..some]) else { break };
            *unsent -= written as u64;
        }
        Ok(())
    }

    fn send(&mut self) {
        let mut buffer = Vec::new();
        for from in [CLIENT, SERVER] {
            loop {
                buffer.clear();
                let now = self.now;
                let Some(connection) = self.connection(from) else { break };
                let Some(sent) = connection.poll_transmit(now, 10, &mut buffer) else { break };
                let size = sent.segment_size.unwrap_or(sent.size);
                for data in buffer[..sent.size].chunks(size) {
                    self.enqueue(Datagram { to: 1 - from, data: data.to_vec(), ecn: sent.ecn });
                }
            }
        }
    }

    /// Sends a datagram, through the bottleneck if it is for the server.
    fn enqueue(&mut self, datagram: Datagram) {
        let mut arrival = self.now + RTT / 2;
        if datagram.to == SERVER {
            let bytes = datagram.data.len() as u64;
            let queued = self.link_free.saturating_duration_since(self.now);
            if queued.as_nanos() as u64 * BYTES_PER_SECOND / 1_000_000_000 + bytes > QUEUE {
                self.dropped += 1;
                return;
            }
            let takes = Duration::from_nanos(bytes * 1_000_000_000 / BYTES_PER_SECOND);
            self.link_free = self.link_free.max(self.now) + takes;
            arrival = self.link_free + RTT / 2;
        }
        self.serial += 1;
        self.in_flight.insert((arrival, self.serial), datagram);
    }

    fn expire(&mut self) {
        let now = self.now;
        for peer in [CLIENT, SERVER] {
            let Some(connection) = self.connection(peer) else { continue };
            if connection.poll_timeout().is_some_and(|time| time <= now) {
                connection.handle_timeout(now);
            }
        }
    }

    fn deliver(&mut self, datagram: &Datagram) {
        let from = self.peers[1 - datagram.to].address;
        let peer = &mut self.peers[datagram.to];
        let (data, mut response) = (BytesMut::from(&datagram.data[..]), Vec::new());
        let event = peer.endpoint.handle(self.now, from, None, datagram.ecn, data, &mut response);
        match event {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut peer.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                let accepted = peer.endpoint.accept(incoming, self.now, &mut response, None);
                peer.connection = accepted.ok();
            }
            Some(DatagramEvent::Response(_)) | None => {}
        }
    }

    fn work(&mut self) -> Result<(), Error> {
        for Peer { endpoint, connection, .. } in &mut self.peers {
            let Some((handle, connection)) = connection else { continue };
            while let Some(event) = connection.poll_endpoint_events() {
                if let Some(event) = endpoint.handle_event(*handle, event) {
                    connection.handle_event(event);
                }
            }
            while let Some(event) = connection.poll() {
                match event {
                    Event::ConnectionLost { reason } => return Err(reason.into()),
                    Event::Stream(StreamEvent::Readable { id }) => {
                        self.received += read(connection, id);
                    }
                    _ => {}
                }
            }
            while let Some(id) = connection.streams().accept(Dir::Uni) {
                self.received += read(connection, id);
            }
        }
        Ok(())
    }
}

/// Reads a stream. Returns the number of new bytes.
fn read(connection: &mut Connection, id: StreamId) -> u64 {
    let mut stream = connection.recv_stream(id);
    let Ok(mut chunks) = stream.read(true) else { return 0 };
    let mut bytes = 0;
    while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
        bytes += chunk.bytes.len() as u64;
    }
    let _ = chunks.finalize();
    bytes
}
