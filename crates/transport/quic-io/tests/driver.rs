//! Drivers without sockets, in virtual time.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

mod common;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use common::{Ends, Report, Request, TestClient, TestServer, transport};
use noq_proto::{ConnectionError, EcnCodepoint, FourTuple, Transmit, VarInt};
use uncork_quic_io::{
    App, Datagram, Driver, Identity, Limits, Progress, Sent, ShutdownOptions, Sink,
};
use uncork_units::Rng;

const SERVER: &str = "192.0.2.1:443";
const CLIENT: &str = "192.0.2.2:5000";
const DELAY: Duration = Duration::from_millis(5);
/// How long a full sink stays full.
const BLOCKED: Duration = Duration::from_micros(50);

/// Destination, payload and ECN mark.
type Packet = (SocketAddr, Vec<u8>, Option<EcnCodepoint>);

/// The network between client and server, with a sink that takes some batches only in part.
struct Wire {
    now: Instant,
    random: Rng,
    /// Percentage of batches taken only in part.
    reluctance: u64,
    refusals: u64,
    sequence: u64,
    in_flight: BTreeMap<(Instant, u64), Packet>,
}

impl Sink for Wire {
    fn send(&mut self, transmit: &Transmit, contents: &[u8]) -> Sent {
        let size = transmit.segment_size.unwrap_or(contents.len());
        let datagrams = contents.len().div_ceil(size) as u64;
        let taken = if self.random.below(100) < self.reluctance {
            self.refusals += 1;
            self.random.below(datagrams)
        } else {
            datagrams
        };
        for data in contents.chunks(size).take(taken as usize) {
            self.sequence += 1;
            let packet = (transmit.destination, data.to_vec(), transmit.ecn);
            self.in_flight.insert((self.now + DELAY, self.sequence), packet);
        }
        if taken == datagrams { Sent::All } else { Sent::Until(taken as usize * size) }
    }
}

struct Pair {
    server: Driver<TestServer>,
    client: Driver<TestClient>,
    wire: Wire,
    reports: Receiver<Report>,
    /// The client's address as the server sees it.
    address: SocketAddr,
    /// When the client received its last large datagram, and the longest time without one.
    received: Option<Instant>,
    longest_gap: Duration,
}

impl Pair {
    fn new(ends: &Ends, server_app: &TestServer, identity: &Identity, reluctance: u64) -> Self {
        let limits = Limits::default();
        let server = server(ends, server_app, identity);
        let client_app = TestClient { client: ends.client.clone() };
        let config = Identity::random().unwrap().endpoint_config(0);
        let client = Driver::new(client_app, config, None, limits, false);
        let random = Rng::new(3, 0);
        let in_flight = BTreeMap::new();
        let now = common::now();
        let wire = Wire { now, random, reluctance, refusals: 0, sequence: 0, in_flight };
        let (reports, address) = (channel().1, CLIENT.parse().unwrap());
        let (received, longest_gap) = (None, Duration::ZERO);
        Self { server, client, wire, reports, address, received, longest_gap }
    }

    fn request(&mut self, bytes: u64, streams: u64) {
        let (report, reports) = channel();
        self.reports = reports;
        let remote = SERVER.parse().unwrap();
        self.client
            .command(self.wire.now, Request { remote, bytes, streams, verify: true, report });
    }

    /// Requests 50 MB, and goes on until the connection is up.
    fn start(&mut self) {
        self.request(50_000_000, 1);
        while !matches!(self.reports.try_recv(), Ok(Report::Started(_))) {
            assert!(self.step());
        }
    }

    /// Advances to the next event. Returns false if there is none.
    fn step(&mut self) -> bool {
        let blocked =
            [pump(&mut self.server, &mut self.wire), pump(&mut self.client, &mut self.wire)];
        let packet = self.wire.in_flight.keys().next().map(|(time, _)| *time);
        let room = blocked.contains(&true).then(|| self.wire.now + BLOCKED);
        let next = [packet, room, self.server.deadline(), self.client.deadline()];
        let Some(next) = next.into_iter().flatten().min() else { return false };
        self.wire.now = self.wire.now.max(next);
        let now = self.wire.now;
        while let Some(entry) = self.wire.in_flight.first_entry() {
            if entry.key().0 > now {
                break;
            }
            let (to, data, ecn) = entry.remove();
            let data = BytesMut::from(&data[..]);
            if to == SERVER.parse().unwrap() {
                let path = FourTuple::from_remote(self.address);
                self.server.receive(now, Datagram { path, ecn, data });
            } else {
                if data.len() > 1000 {
                    let last = self.received.replace(now).unwrap_or(now);
                    self.longest_gap = self.longest_gap.max(now - last);
                }
                let path = FourTuple::from_remote(SERVER.parse().unwrap());
                self.client.receive(now, Datagram { path, ecn, data });
            }
        }
        self.server.expire(now);
        self.client.expire(now);
        true
    }

    /// The result of the client's connection.
    fn end(&mut self) -> (u64, ConnectionError) {
        loop {
            let is_alive = self.step();
            if let Ok(Report::Closed { bytes, is_valid, reason, finished }) =
                self.reports.try_recv()
            {
                assert!(is_valid || finished == 0, "wrong bytes");
                return (bytes, reason);
            }
            assert!(is_alive, "no event is pending");
        }
    }
}

fn server(ends: &Ends, server_app: &TestServer, identity: &Identity) -> Driver<TestServer> {
    let config = identity.endpoint_config(0);
    Driver::new(server_app.clone(), config, Some(ends.server.base()), Limits::default(), false)
}

/// Runs all ready connections. Returns whether the wire is full.
fn pump<A: App>(driver: &mut Driver<A>, wire: &mut Wire) -> bool {
    loop {
        match driver.run_next(wire.now, wire) {
            Progress::Worked => {}
            Progress::Idle => return false,
            Progress::Blocked => return true,
        }
    }
}

fn ends() -> Ends {
    Ends::new(&transport(Duration::from_secs(30)))
}

#[test]
fn data_that_a_full_socket_rejects_is_not_lost() {
    let ends = ends();
    for cc in ["cubic", "bbr3"] {
        let server_app = TestServer::new(&ends, cc);
        let mut pair = Pair::new(&ends, &server_app, &Identity::random().unwrap(), 40);
        pair.request(3_000_000, 3);
        assert_eq!(pair.end(), (9_000_000, ConnectionError::LocallyClosed));
        assert!(pair.wire.refusals > 100, "{} refusals", pair.wire.refusals);
        while pair.step() {}
        assert_eq!(server_app.lost.load(Ordering::Relaxed), 0, "{cc}: datagrams were lost");
    }
}

#[test]
fn nothing_remains_after_all_connections_close() {
    let ends = ends();
    let mut pair =
        Pair::new(&ends, &TestServer::new(&ends, "bbr3"), &Identity::random().unwrap(), 0);
    pair.request(10_000, 1);
    pair.end();
    while pair.step() {}
    assert_eq!(pair.server.stats().connections + pair.client.stats().connections, 0);
    assert_eq!((pair.server.deadline(), pair.client.deadline()), (None, None));
    assert!(!pair.server.is_ready() && !pair.client.is_ready());
}

#[test]
fn a_restarted_server_resets_its_clients_connections() {
    let ends = ends();
    let identity = Identity::from_secret(&[9; 32]).unwrap();
    let server_app = TestServer::new(&ends, "bbr3");
    let mut pair = Pair::new(&ends, &server_app, &identity, 0);
    pair.start();
    pair.server = server(&ends, &server_app, &identity);
    let crash = pair.wire.now;
    let (_, reason) = pair.end();
    assert_eq!(reason, ConnectionError::Reset);
    assert!(pair.wire.now - crash < Duration::from_secs(1), "{:?}", pair.wire.now - crash);
}

#[test]
fn a_client_without_its_server_times_out() {
    let ends = ends();
    let identity = Identity::random().unwrap();
    let mut pair = Pair::new(&ends, &TestServer::new(&ends, "bbr3"), &identity, 0);
    pair.start();
    let start = pair.wire.now;
    // The new server neither knows the connection nor can send a stateless reset for it.
    pair.server = server(&ends, &TestServer::new(&ends, "bbr3"), &Identity::random().unwrap());
    assert_eq!(pair.end().1, ConnectionError::TimedOut);
    assert!(pair.wire.now - start > Duration::from_secs(29));
    assert_eq!(pair.client.stats().connections, 0);
}

#[test]
fn a_shutdown_ends_in_time_if_clients_do_not_answer() {
    let ends = ends();
    let mut pair =
        Pair::new(&ends, &TestServer::new(&ends, "cubic"), &Identity::random().unwrap(), 0);
    pair.start();
    let start = pair.wire.now;
    let (finish, drain) = (Duration::from_millis(10), Duration::from_millis(15));
    let code = VarInt::from_u32(5);
    pair.server.shut_down(start, ShutdownOptions { finish, code, reason: Bytes::new(), drain });
    while !pair.server.is_over(pair.wire.now) {
        pair.wire.in_flight.clear(); // The client is gone.
        assert!(pair.step());
    }
    // Both ends have exact timers, and the cleared packets cause no step.
    let took = pair.wire.now - start;
    assert!(took >= finish + drain && took < Duration::from_millis(100), "{took:?}");
    pair.server.abandon(pair.wire.now);
    assert_eq!(pair.server.stats().connections, 0);
}

/// A short datagram with an unsupported version may have a spoofed source address (RFC 9000
/// §5.2.2).
#[test]
fn versions_are_negotiated_with_full_datagrams_only() {
    let ends = ends();
    let mut pair =
        Pair::new(&ends, &TestServer::new(&ends, "cubic"), &Identity::random().unwrap(), 0);
    let mut answers = |length: usize| {
        let head =
            [0xc0, 0x1a, 0x2a, 0x3a, 0x4a, 8, 1, 2, 3, 4, 5, 6, 7, 8, 8, 1, 2, 3, 4, 5, 6, 7, 8];
        let mut data = BytesMut::from(&head[..]);
        data.resize(length, 0);
        let path = FourTuple::from_remote(CLIENT.parse().unwrap());
        pair.server.receive(pair.wire.now, Datagram { path, ecn: None, data });
        pump(&mut pair.server, &mut pair.wire);
        std::mem::take(&mut pair.wire.in_flight).len()
    };
    assert_eq!((answers(50), answers(1199), answers(1200)), (0, 0, 1));
}

/// A client sends its first packets and never answers: its address may be spoofed.
#[test]
fn a_handshake_receives_at_most_three_times_what_it_sent() {
    let ends = ends();
    let mut pair =
        Pair::new(&ends, &TestServer::new(&ends, "cubic"), &Identity::random().unwrap(), 0);
    pair.request(1000, 1);
    pump(&mut pair.client, &mut pair.wire);
    let (mut received, mut sent) = (0, 0);
    let path = FourTuple::from_remote(CLIENT.parse().unwrap());
    for (_, data, ecn) in std::mem::take(&mut pair.wire.in_flight).into_values() {
        received += data.len();
        pair.server.receive(pair.wire.now, Datagram { path, ecn, data: BytesMut::from(&data[..]) });
    }
    for _ in 0..20 {
        pump(&mut pair.server, &mut pair.wire);
        let answers = std::mem::take(&mut pair.wire.in_flight);
        sent += answers.values().map(|(_, data, _)| data.len()).sum::<usize>();
        let Some(deadline) = pair.server.deadline() else { break };
        pair.wire.now = deadline;
        pair.server.expire(deadline);
    }
    assert!(received >= 1200 && sent > 1200 && sent <= 3 * received, "{sent} for {received}");
}

/// A router that restarts, or forgets its mappings, gives a client a new port.
#[test]
fn a_client_with_a_port_that_changes_often_is_served_without_a_stall() {
    let ends = ends();
    let mut pair =
        Pair::new(&ends, &TestServer::new(&ends, "cubic"), &Identity::random().unwrap(), 0);
    pair.start();
    let mut ports = 0;
    while pair.reports.try_recv().is_err() {
        pair.address.set_port(pair.address.port() + 1);
        ports += 1;
        let until = pair.wire.now + 4 * DELAY;
        while pair.wire.now < until && pair.step() {}
    }
    let gap = pair.longest_gap;
    // A round trip until the new address is validated, and one until acknowledgements release more.
    assert!(ports > 12 && gap <= 5 * DELAY, "{ports} ports, nothing for up to {gap:?}");
}

/// An attacker spoofs the source address of every fourth packet of its own connections. By chance some of them
/// end early: the server takes a victim for the client.
#[test]
fn spoofed_addresses_receive_at_most_three_times_what_they_sent() {
    let mut all = Spoofed::default();
    while all.victims < 20 {
        assert!(all.connections < 10, "{all:?}");
        all.connect();
    }
    let Spoofed { victims, received, sent, .. } = all;
    assert!(sent > 0, "to {victims} victims");
    assert!(sent <= 3 * received, "{sent} for {received} to {victims}");
}

/// What was received from victims, and sent to them, in bytes.
#[derive(Debug, Default)]
struct Spoofed {
    connections: usize,
    victims: u16,
    received: usize,
    sent: usize,
}

impl Spoofed {
    fn connect(&mut self) {
        self.connections += 1;
        let ends = ends();
        let mut pair =
            Pair::new(&ends, &TestServer::new(&ends, "cubic"), &Identity::random().unwrap(), 0);
        pair.start();
        let mut packets = 0;
        for _ in 0..1000 {
            pump(&mut pair.client, &mut pair.wire);
            pump(&mut pair.server, &mut pair.wire);
            pair.wire.now += DELAY;
            for (to, data, ecn) in std::mem::take(&mut pair.wire.in_flight).into_values() {
                let data = BytesMut::from(&data[..]);
                if to == SERVER.parse().unwrap() {
                    packets += 1;
                    let mut from = CLIENT.parse().unwrap();
                    if packets % 4 == 0 {
                        self.victims += 1;
                        self.received += data.len();
                        from = SocketAddr::from(([198, 51, 100, 7], 1000 + self.victims));
                    }
                    let path = FourTuple::from_remote(from);
                    pair.server.receive(pair.wire.now, Datagram { path, ecn, data });
                } else if to == CLIENT.parse().unwrap() {
                    let path = FourTuple::from_remote(SERVER.parse().unwrap());
                    pair.client.receive(pair.wire.now, Datagram { path, ecn, data });
                } else {
                    self.sent += data.len();
                }
            }
            pair.server.expire(pair.wire.now);
            pair.client.expire(pair.wire.now);
        }
    }
}
