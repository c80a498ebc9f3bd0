//! A client and a server of the stack in virtual time, with a bottleneck between them.
#![allow(dead_code, reason = "no test file uses all of it")]
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

mod identity;

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use noq_proto::{
    ClientConfig, Connection, ConnectionHandle, ConnectionId, DatagramEvent, Dir, EcnCodepoint,
    Endpoint, EndpointConfig, Event, FourTuple, HashedConnectionIdGenerator, ServerConfig,
    StreamEvent, StreamId, TransportConfig, VarInt,
};
use uncork_cc::CcSpec;
use uncork_quic::{Choice, Handle};

pub(crate) const SERVER: &str = "192.0.2.1:443";
pub(crate) const CLIENT: &str = "192.0.2.2:5000";

/// The path between client and server, and their settings.
#[derive(Clone)]
pub(crate) struct Spec {
    pub(crate) cc: Choice,
    pub(crate) rate_mbit: u64,
    pub(crate) rtt: Duration,
    /// Queue limit towards the client, in bytes.
    pub(crate) queue: u64,
    /// Whether the `n`-th full-sized packet to the client is lost, counted from 0.
    pub(crate) is_lost: Arc<dyn Fn(u64) -> bool>,
    /// Extra delay of the `n`-th full-sized packet to the client.
    pub(crate) late: Arc<dyn Fn(u64) -> Duration>,
    /// Packets that find more bytes than this in the queue are marked.
    pub(crate) mark_above: u64,
    /// What the path makes of the codepoint of the server's packets; `None`: it discards the packet.
    pub(crate) remark: fn(Option<EcnCodepoint>) -> Option<Option<EcnCodepoint>>,
    /// The largest datagram that passes, which the stack must discover; `None`: both ends know it.
    pub(crate) mtu: Option<usize>,
    pub(crate) seed: u8,
}

/// A controller with its defaults.
pub(crate) fn choice(cc: &str) -> Choice {
    cc.parse::<CcSpec>().unwrap().into()
}

impl Spec {
    pub(crate) fn new(cc: &str, rate_mbit: u64, rtt_ms: u64) -> Self {
        let rtt = Duration::from_millis(rtt_ms);
        let bdp = rate_mbit * 1_000_000 / 8 * rtt_ms / 1000;
        Self {
            cc: choice(cc),
            rate_mbit,
            rtt,
            queue: 2 * bdp,
            is_lost: Arc::new(|_| false),
            late: Arc::new(|_| Duration::ZERO),
            mark_above: u64::MAX,
            remark: Some,
            mtu: None,
            seed: 1,
        }
    }
}

struct Packet {
    to: usize,
    from: SocketAddr,
    data: Vec<u8>,
    ecn: Option<EcnCodepoint>,
}

struct Peer {
    endpoint: Endpoint,
    address: SocketAddr,
    connection: Option<(ConnectionHandle, Connection)>,
    /// Bytes still to write, by stream.
    unsent: HashMap<StreamId, u64>,
    received: HashMap<StreamId, u64>,
    finished: Vec<StreamId>,
}

/// A client and a server, and the packets between them.
pub(crate) struct Pair {
    epoch: Instant,
    pub(crate) now: Instant,
    spec: Spec,
    peers: [Peer; 2],
    in_flight: BTreeMap<(Instant, u64), Packet>,
    sequence: u64,
    full_sized: u64,
    free_at: Instant,
    pub(crate) marked: u64,
    /// Packets of the server by codepoint: Not-ECT, ECT(1), ECT(0).
    pub(crate) sent: [u64; 3],
    pub(crate) dropped: u64,
    server_config: Arc<ServerConfig>,
    /// The congestion control of the server's connection.
    pub(crate) handle: Handle,
    /// Time and size of each datagram sent.
    pub(crate) trace: Vec<(Duration, usize)>,
}

static ZEROS: [u8; 1 << 16] = [0; 1 << 16];
const SERVER_SIDE: usize = 0;
const CLIENT_SIDE: usize = 1;

#[expect(clippy::disallowed_methods, reason = "an instant can only be had from the clock")]
pub(crate) fn epoch() -> Instant {
    Instant::now()
}

fn endpoint(seed: u8, server: Option<Arc<ServerConfig>>) -> Endpoint {
    let mut config = EndpointConfig::default();
    config.rng_seed(Some([seed; 32]));
    config.cid_generator(Arc::new(move || {
        Box::new(HashedConnectionIdGenerator::from_key(seed.into()))
    }));
    Endpoint::new(Arc::new(config), server, true)
}

fn transport(handle: &Handle, mtu: Option<usize>) -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport.congestion_controller_factory(handle.factory());
    if mtu.is_none() {
        transport.mtu_discovery_config(None).initial_mtu(1452);
    }
    transport.max_idle_timeout(None);
    transport.stream_receive_window(VarInt::from_u32(16 << 20));
    transport.receive_window(VarInt::from_u32(16 << 20));
    transport.send_window(8 << 20);
    Arc::new(transport)
}

impl Pair {
    pub(crate) fn new(spec: Spec) -> Self {
        Self::choosing(spec, |_| None)
    }

    /// A pair. Its server chooses by the client's server name, `named.example`.
    pub(crate) fn choosing(
        spec: Spec,
        choose: impl Fn(Option<&str>) -> Option<Choice> + Send + Sync + 'static,
    ) -> Self {
        let epoch = epoch();
        let (certificate, key) = identity::certificate();
        let (tls, trusting) = identity::cryptography(&certificate, &key);
        let handle = Handle::new(spec.cc, u64::from(spec.seed), epoch);
        let mut server = ServerConfig::with_crypto(handle.server(tls, choose));
        server.transport_config(transport(&handle, spec.mtu));
        let server_config = Arc::new(server);
        let own = Handle::new(choice("reno"), 9, epoch);
        let mut config = ClientConfig::new(own.client(trusting));
        config.transport_config(transport(&own, spec.mtu));
        let id = [spec.seed; 8];
        config.initial_dst_cid_provider(Arc::new(move || ConnectionId::new(&id)));

        let peer = |address: &str, seed, config| Peer {
            endpoint: endpoint(seed, config),
            address: address.parse().unwrap(),
            connection: None,
            unsent: HashMap::new(),
            received: HashMap::new(),
            finished: Vec::new(),
        };
        let server = peer(SERVER, spec.seed, Some(Arc::clone(&server_config)));
        let mut client = peer(CLIENT, spec.seed ^ 0x80, None);
        let to = server.address;
        let connection = client.endpoint.connect(epoch, config, to, identity::NAME).unwrap();
        client.connection = Some(connection);
        Self {
            epoch,
            now: epoch,
            spec,
            peers: [server, client],
            in_flight: BTreeMap::new(),
            sequence: 0,
            full_sized: 0,
            free_at: epoch,
            marked: 0,
            sent: [0; 3],
            dropped: 0,
            server_config,
            handle,
            trace: Vec::new(),
        }
    }

    fn client(&mut self) -> &mut Connection {
        &mut self.peers[CLIENT_SIDE].connection.as_mut().unwrap().1
    }

    /// Requests `bytes` on a new stream of the client, once the handshake is done.
    pub(crate) fn request(&mut self, bytes: u64) -> StreamId {
        while self.client().is_handshaking() {
            self.step(self.epoch + Duration::from_secs(10)).expect("a handshake");
        }
        let connection = self.client();
        let stream = connection.streams().open(Dir::Bi).unwrap();
        connection.send_stream(stream).write(&bytes.to_be_bytes()).unwrap();
        connection.send_stream(stream).finish().unwrap();
        stream
    }

    /// Changes the client's address.
    pub(crate) fn move_client(&mut self, address: &str) {
        self.peers[CLIENT_SIDE].address = address.parse().unwrap();
    }

    /// Advances until `stream` has arrived completely. Returns the time since the start, or `None` if that
    /// exceeds `at_most` or nothing more happens.
    pub(crate) fn run(&mut self, stream: StreamId, at_most: Duration) -> Option<Duration> {
        let end = self.epoch + at_most;
        while !self.peers[CLIENT_SIDE].finished.contains(&stream) {
            self.step(end)?;
        }
        Some(self.now - self.epoch)
    }

    /// Advances until `time` after the start.
    pub(crate) fn run_until(&mut self, time: Duration) {
        let end = self.epoch + time;
        while self.step(end).is_some() {}
        self.now = end;
    }

    /// Advances by `span`.
    pub(crate) fn wait(&mut self, span: Duration) {
        self.run_until(self.now - self.epoch + span);
    }

    /// Bytes that the client has received on `stream`.
    pub(crate) fn received(&self, stream: StreamId) -> u64 {
        self.peers[CLIENT_SIDE].received.get(&stream).copied().unwrap_or(0)
    }

    fn step(&mut self, end: Instant) -> Option<()> {
        self.send();
        let timers =
            self.peers.iter().filter_map(|peer| peer.connection.as_ref()?.1.poll_timeout());
        let timer = timers.min();
        let packet = self.in_flight.keys().next().map(|(time, _)| *time);
        let next = timer.into_iter().chain(packet).min()?;
        if next > end {
            return None;
        }
        self.now = self.now.max(next);
        for peer in &mut self.peers {
            if let Some((_, connection)) = &mut peer.connection
                && connection.poll_timeout().is_some_and(|time| time <= self.now)
            {
                connection.handle_timeout(self.now);
            }
        }
        while let Some(entry) = self.in_flight.first_entry() {
            if entry.key().0 > self.now {
                break;
            }
            let packet = entry.remove();
            self.deliver(&packet);
        }
        for index in [SERVER_SIDE, CLIENT_SIDE] {
            self.work(index);
        }
        Some(())
    }

    fn deliver(&mut self, packet: &Packet) {
        let peer = &mut self.peers[packet.to];
        let mut response = Vec::new();
        let data = BytesMut::from(&packet.data[..]);
        let path = FourTuple::from_remote(packet.from);
        let event = peer.endpoint.handle(self.now, path, packet.ecn, data, &mut response);
        match event {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut peer.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                let config = Some(Arc::clone(&self.server_config));
                let accepted = peer.endpoint.accept(incoming, self.now, &mut response, config);
                peer.connection = accepted.ok();
            }
            Some(DatagramEvent::Response(_)) | None => {}
        }
    }

    /// Runs the application of a peer.
    fn work(&mut self, index: usize) {
        let peer = &mut self.peers[index];
        let Some((handle, connection)) = &mut peer.connection else { return };
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = peer.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        while let Some(event) = connection.poll() {
            match event {
                Event::ConnectionLost { reason } => panic!("{reason}"),
                Event::Stream(StreamEvent::Readable { id }) => {
                    read(connection, id, &mut peer.received, &mut peer.finished);
                }
                _ => {}
            }
        }
        while let Some(id) = connection.streams().accept(Dir::Bi) {
            read(connection, id, &mut peer.received, &mut peer.finished);
        }
        if index == SERVER_SIDE {
            for id in peer.finished.drain(..) {
                peer.unsent.insert(id, peer.received[&id]);
            }
            peer.unsent.retain(|id, left| write(connection, *id, left));
        }
    }

    fn send(&mut self) {
        for index in [SERVER_SIDE, CLIENT_SIDE] {
            let mut buffer = Vec::new();
            loop {
                buffer.clear();
                let Some((_, connection)) = &mut self.peers[index].connection else { break };
                let ten = std::num::NonZeroUsize::new(10).unwrap();
                let Some(sent) = connection.poll_transmit(self.now, ten, &mut buffer) else {
                    break;
                };
                let size = sent.segment_size.unwrap_or(sent.size);
                for data in buffer[..sent.size].chunks(size) {
                    self.trace.push((self.now - self.epoch, data.len()));
                    self.enqueue(index, data.to_vec(), sent.ecn);
                }
            }
        }
    }

    /// Sends a packet. The server's packets pass the bottleneck.
    fn enqueue(&mut self, from: usize, data: Vec<u8>, mut ecn: Option<EcnCodepoint>) {
        if self.spec.mtu.is_some_and(|mtu| data.len() > mtu) {
            return;
        }
        let mut arrival = self.now + self.spec.rtt / 2;
        if from == SERVER_SIDE {
            self.sent[ecn.map_or(0, |codepoint| codepoint as usize)] += 1;
            let Some(remarked) = (self.spec.remark)(ecn) else { return };
            ecn = remarked;
            let bytes = data.len() as u64 + 28;
            let waiting = self.free_at.saturating_duration_since(self.now);
            let queued = waiting.as_nanos() as u64 * self.spec.rate_mbit / 8_000;
            if queued + bytes > self.spec.queue {
                self.dropped += 1;
                return;
            }
            if queued > self.spec.mark_above && ecn.is_some() {
                ecn = Some(EcnCodepoint::Ce);
                self.marked += 1;
            }
            let sending = Duration::from_nanos(bytes * 8_000 / self.spec.rate_mbit);
            self.free_at = self.free_at.max(self.now) + sending;
            arrival = self.free_at + self.spec.rtt / 2;
            if data.len() >= 1200 {
                self.full_sized += 1;
                if (self.spec.is_lost)(self.full_sized - 1) {
                    return;
                }
                arrival += (self.spec.late)(self.full_sized - 1);
            }
        }
        let packet = Packet { to: 1 - from, from: self.peers[from].address, data, ecn };
        self.sequence += 1;
        self.in_flight.insert((arrival, self.sequence), packet);
    }
}

/// Reads available data. A request names the number of bytes that the server shall send.
fn read(
    connection: &mut Connection,
    id: StreamId,
    received: &mut HashMap<StreamId, u64>,
    finished: &mut Vec<StreamId>,
) {
    let is_server = connection.side().is_server();
    let mut stream = connection.recv_stream(id);
    let Ok(mut chunks) = stream.read(true) else { return };
    loop {
        match chunks.next(usize::MAX) {
            Ok(Some(chunk)) => {
                let bytes: Bytes = chunk.bytes;
                let so_far = received.entry(id).or_default();
                *so_far = match <[u8; 8]>::try_from(&bytes[..]) {
                    Ok(number) if is_server => u64::from_be_bytes(number),
                    _ => *so_far + bytes.len() as u64,
                };
            }
            Ok(None) => {
                finished.push(id);
                break;
            }
            Err(_) => break,
        }
    }
    let _ = chunks.finalize();
}

/// Writes until the stack is full. Returns whether more is left.
fn write(connection: &mut Connection, id: StreamId, left: &mut u64) -> bool {
    let mut stream = connection.send_stream(id);
    while *left > 0 {
        let some = (*left).min(ZEROS.len() as u64) as usize;
        match stream.write(&ZEROS[..some]) {
            Ok(written) => *left -= written as u64,
            Err(_) => return true,
        }
    }
    stream.finish().unwrap();
    false
}
