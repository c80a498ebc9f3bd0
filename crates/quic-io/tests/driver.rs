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
use common::{Ask, Asking, Ends, Serving, Told, transport};
use noq_proto::{ConnectionError, EcnCodepoint, FourTuple, Transmit, VarInt};
use uncork_quic_io::{
    App, Datagram, Driver, Identity, Limits, Progress, Sent, ShutdownOptions, Sink,
};
use uncork_units::Rng;

const SERVER: &str = "192.0.2.1:443";
const CLIENT: &str = "192.0.2.2:5000";
const DELAY: Duration = Duration::from_millis(5);
/// What a sink that takes no more takes again after.
const BLOCKED: Duration = Duration::from_micros(50);

/// To whom, what, and how it is marked.
type Packet = (SocketAddr, Vec<u8>, Option<EcnCodepoint>);

/// What is on the way, and how willingly it is taken.
struct Wire {
    now: Instant,
    random: Rng,
    /// Of 100 batches, those that are not taken as a whole.
    reluctance: u64,
    refusals: u64,
    sequence: u64,
    on_the_way: BTreeMap<(Instant, u64), Packet>,
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
            self.on_the_way.insert((self.now + DELAY, self.sequence), packet);
        }
        if taken == datagrams { Sent::All } else { Sent::Until(taken as usize * size) }
    }
}

struct Pair {
    server: Driver<Serving>,
    client: Driver<Asking>,
    wire: Wire,
    told: Receiver<Told>,
}

impl Pair {
    fn new(ends: &Ends, serving: &Serving, identity: &Identity, reluctance: u64) -> Self {
        let limits = Limits::default();
        let server = server(ends, serving, identity);
        let asking = Asking { client: ends.client.clone() };
        let config = Identity::random().unwrap().endpoint_config(0);
        let client = Driver::new(asking, config, None, limits, false);
        let random = Rng::new(3, 0);
        let on_the_way = BTreeMap::new();
        let now = common::now();
        let wire = Wire { now, random, reluctance, refusals: 0, sequence: 0, on_the_way };
        Self { server, client, wire, told: channel().1 }
    }

    fn ask(&mut self, bytes: u64, streams: u64) {
        let (tell, told) = channel();
        self.told = told;
        let remote = SERVER.parse().unwrap();
        self.client.command(self.wire.now, Ask { remote, bytes, streams, looks: true, tell });
    }

    /// Lets the next thing happen; whether there is one.
    fn step(&mut self) -> bool {
        let blocked =
            [pump(&mut self.server, &mut self.wire), pump(&mut self.client, &mut self.wire)];
        let packet = self.wire.on_the_way.keys().next().map(|(time, _)| *time);
        let room = blocked.contains(&true).then(|| self.wire.now + BLOCKED);
        let next = [packet, room, self.server.deadline(), self.client.deadline()];
        let Some(next) = next.into_iter().flatten().min() else { return false };
        self.wire.now = self.wire.now.max(next);
        let now = self.wire.now;
        while let Some(entry) = self.wire.on_the_way.first_entry() {
            if entry.key().0 > now {
                break;
            }
            let (to, data, ecn) = entry.remove();
            let data = BytesMut::from(&data[..]);
            if to == SERVER.parse().unwrap() {
                let path = FourTuple::from_remote(CLIENT.parse().unwrap());
                self.server.receive(now, Datagram { path, ecn, data });
            } else {
                let path = FourTuple::from_remote(SERVER.parse().unwrap());
                self.client.receive(now, Datagram { path, ecn, data });
            }
        }
        self.server.expire(now);
        self.client.expire(now);
        true
    }

    /// How the client's connection ended.
    fn end(&mut self) -> (u64, ConnectionError) {
        loop {
            let is_alive = self.step();
            if let Ok(Told::Over { bytes, is_right, reason, finished }) = self.told.try_recv() {
                assert!(is_right || finished == 0, "wrong bytes");
                return (bytes, reason);
            }
            assert!(is_alive, "nothing will ever happen");
        }
    }
}

fn server(ends: &Ends, serving: &Serving, identity: &Identity) -> Driver<Serving> {
    let config = identity.endpoint_config(0);
    Driver::new(serving.clone(), config, Some(ends.server.base()), Limits::default(), false)
}

/// Lets all connections act and send; whether the wire took no more.
fn pump<A: App>(driver: &mut Driver<A>, wire: &mut Wire) -> bool {
    loop {
        match driver.turn(wire.now, wire) {
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
fn what_a_socket_does_not_take_is_not_lost() {
    let ends = ends();
    for cc in ["cubic", "bbr3"] {
        let serving = Serving::new(&ends, cc);
        let mut pair = Pair::new(&ends, &serving, &Identity::random().unwrap(), 40);
        pair.ask(3_000_000, 3);
        assert_eq!(pair.end(), (9_000_000, ConnectionError::LocallyClosed));
        assert!(pair.wire.refusals > 100, "{} refusals", pair.wire.refusals);
        while pair.step() {}
        assert_eq!(serving.lost.load(Ordering::Relaxed), 0, "{cc}: datagrams were lost");
    }
}

#[test]
fn nothing_remains_when_all_is_over() {
    let ends = ends();
    let mut pair = Pair::new(&ends, &Serving::new(&ends, "bbr3"), &Identity::random().unwrap(), 0);
    pair.ask(10_000, 1);
    pair.end();
    while pair.step() {}
    assert_eq!(pair.server.stats().connections + pair.client.stats().connections, 0);
    assert_eq!((pair.server.deadline(), pair.client.deadline()), (None, None));
    assert!(!pair.server.is_ready() && !pair.client.is_ready());
}

#[test]
fn clients_of_a_server_that_was_started_anew_learn_it_at_once() {
    let ends = ends();
    let identity = Identity::from_secret(&[9; 32]).unwrap();
    let serving = Serving::new(&ends, "bbr3");
    let mut pair = Pair::new(&ends, &serving, &identity, 0);
    pair.ask(50_000_000, 1);
    while !matches!(pair.told.try_recv(), Ok(Told::Begun(_))) {
        assert!(pair.step());
    }
    pair.server = server(&ends, &serving, &identity);
    let crash = pair.wire.now;
    let (_, reason) = pair.end();
    assert_eq!(reason, ConnectionError::Reset);
    assert!(pair.wire.now - crash < Duration::from_secs(1), "{:?}", pair.wire.now - crash);
}

#[test]
fn a_client_whose_server_is_gone_times_out() {
    let ends = ends();
    let identity = Identity::random().unwrap();
    let mut pair = Pair::new(&ends, &Serving::new(&ends, "bbr3"), &identity, 0);
    pair.ask(50_000_000, 1);
    while !matches!(pair.told.try_recv(), Ok(Told::Begun(_))) {
        assert!(pair.step());
    }
    let start = pair.wire.now;
    // One that does not know the connection, and nothing to tell the client so.
    pair.server = server(&ends, &Serving::new(&ends, "bbr3"), &Identity::random().unwrap());
    assert_eq!(pair.end().1, ConnectionError::TimedOut);
    assert!(pair.wire.now - start > Duration::from_secs(29));
    assert_eq!(pair.client.stats().connections, 0);
}

#[test]
fn a_shutdown_ends_in_time_whoever_does_not_answer() {
    let ends = ends();
    let mut pair = Pair::new(&ends, &Serving::new(&ends, "cubic"), &Identity::random().unwrap(), 0);
    pair.ask(50_000_000, 1);
    while !matches!(pair.told.try_recv(), Ok(Told::Begun(_))) {
        assert!(pair.step());
    }
    let start = pair.wire.now;
    let (finish, drain) = (Duration::from_millis(10), Duration::from_millis(15));
    let code = VarInt::from_u32(5);
    pair.server.shut_down(start, ShutdownOptions { finish, code, reason: Bytes::new(), drain });
    while !pair.server.is_over(pair.wire.now) {
        pair.wire.on_the_way.clear(); // The client is gone.
        assert!(pair.step());
    }
    // Its timers and those of the client are exact; packets that are cleared make no step.
    let took = pair.wire.now - start;
    assert!(took >= finish + drain && took < Duration::from_millis(100), "{took:?}");
    pair.server.abandon(pair.wire.now);
    assert_eq!(pair.server.stats().connections, 0);
}
