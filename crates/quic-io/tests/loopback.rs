//! Workers over the loopback device.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

mod common;

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use bytes::Bytes;
use common::{Ask, Asking, Ends, Serving, Told, now, transport, until};
use noq_proto::{ConnectionError, VarInt};
use uncork_quic_io::{
    App, Arrival, Driver, Identity, Limits, Progress, ShutdownOptions, Socket, Turn, Verdict,
    Workers, bind,
};
use uncork_testkit::{Capability, not_run, pause};

const LOCALHOST: &str = "127.0.0.1:0";

/// A server on some threads, and clients on one.
struct Test {
    server: Workers<()>,
    clients: Workers<Ask>,
    remote: SocketAddr,
}

impl Test {
    fn new(ends: &Ends, serving: &Serving, workers: usize) -> Self {
        let sockets = bind(LOCALHOST.parse().unwrap(), workers).unwrap();
        let app = serving.clone();
        let server = Workers::start(sockets, &ends.server_config(), move |_| app.clone()).unwrap();
        let remote = server.addresses()[0];
        Self { clients: clients(ends, LOCALHOST), server, remote }
    }

    fn ask(&self, bytes: u64, streams: u64) -> Receiver<Told> {
        let (tell, told) = channel();
        let ask = Ask { remote: self.remote, bytes, streams, looks: true, tell };
        self.clients.tell(0, ask);
        told
    }

    fn sum(&self, of: impl Fn(uncork_quic_io::Stats) -> u64) -> u64 {
        (0..self.server.count()).map(|worker| of(self.server.stats(worker))).sum()
    }
}

fn clients(ends: &Ends, address: &str) -> Workers<Ask> {
    let socket = UdpSocket::bind(address).unwrap();
    let client = ends.client.clone();
    let make = move |_| Asking { client: client.clone() };
    Workers::start(vec![socket], &Ends::client_config(), make).unwrap()
}

fn ends() -> Ends {
    Ends::new(&transport(Duration::from_mins(1)))
}

/// How it ended: bytes, and why.
fn end(told: &Receiver<Told>) -> (u64, ConnectionError) {
    loop {
        match told.recv_timeout(Duration::from_mins(5)).expect("an end") {
            Told::Begun(_) => {}
            Told::Over { bytes, is_right, reason, finished } => {
                assert!(is_right || finished == 0, "wrong bytes");
                return (bytes, reason);
            }
        }
    }
}

fn assert_complete(told: &Receiver<Told>, bytes: u64) {
    assert_eq!(end(told), (bytes, ConnectionError::LocallyClosed));
}

#[test]
fn a_hundred_megabytes_arrive_with_every_controller() {
    for cc in ["reno", "cubic", "bbr1", "bbr2", "bbr3"] {
        let ends = ends();
        let test = Test::new(&ends, &Serving::new(&ends, cc), 1);
        assert_complete(&test.ask(100_000_000, 1), 100_000_000);
        let stats = test.server.stats(0).socket;
        assert!(stats.datagrams_sent > stats.batches_sent, "{cc}: no segmentation");
        assert!(stats.bytes_sent > 100_000_000, "{cc}");
    }
}

#[test]
fn connections_that_are_abandoned_are_forgotten() {
    let ends = Ends::new(&transport(Duration::from_secs(2)));
    let test = Test::new(&ends, &Serving::new(&ends, "bbr3"), 2);
    let asking = Asking { client: ends.client.clone() };
    let config = Identity::random().unwrap().endpoint_config(0);
    let mut driver = Driver::new(asking, config, None, Limits::default(), false);
    let socket = UdpSocket::bind(LOCALHOST).unwrap();
    let mut socket = Socket::new(socket, Ends::client_config().socket).unwrap();
    let (tell, told) = channel();
    let ask = Ask { remote: test.remote, bytes: 1_000_000, streams: 1, looks: true, tell };
    for _ in 0..1000 {
        driver.command(now(), ask.clone());
    }
    // Some are in their handshake then, some in the middle of their transfer, some over.
    until("1000 connections", || {
        while socket.receive(|datagram| driver.receive(now(), datagram)) {}
        driver.expire(now());
        while driver.turn(now(), &mut socket) == Progress::Worked {}
        test.sum(|stats| stats.driver.accepted) == 1000
    });
    drop((driver, socket));
    assert!(told.try_iter().all(|told| !matches!(told, Told::Over { is_right: false, .. })));
    until("all forgotten", || test.sum(|stats| stats.driver.connections) == 0);
    assert_complete(&test.ask(10_000, 1), 10_000);
}

#[test]
fn connections_share_a_worker() {
    let ends = ends();
    let test = Test::new(&ends, &Serving::new(&ends, "bbr3"), 2);
    let asked: Vec<_> = (0..50).map(|_| test.ask(100_000, 10)).collect();
    for told in &asked {
        assert_complete(told, 1_000_000);
    }
    assert_eq!(test.sum(|stats| stats.driver.accepted), 50);
    until("empty", || test.sum(|stats| stats.driver.connections) == 0);
}

#[test]
fn a_large_transfer_does_not_keep_small_ones_waiting() {
    let ends = ends();
    let test = Test::new(&ends, &Serving::new(&ends, "bbr3"), 1);
    let large = test.ask(4_000_000_000, 1);
    assert!(matches!(large.recv(), Ok(Told::Begun(_))));
    for _ in 0..20 {
        assert_complete(&test.ask(10_000, 1), 10_000);
    }
    assert!(large.try_recv().is_err(), "4 GB were faster than 200 kB");
}

#[test]
fn what_is_no_quic_does_no_harm() {
    let ends = ends();
    let test = Test::new(&ends, &Serving::new(&ends, "bbr3"), 2);
    let socket = UdpSocket::bind(LOCALHOST).unwrap();
    let mut random = uncork_units::Rng::new(5, 0);
    for _ in 0..20_000 {
        let length = random.below(1500) as usize;
        let mut data: Vec<u8> = (0..length).map(|_| random.next_u64() as u8).collect();
        if random.below(2) == 0 && length > 5 {
            // The first packet of a connection, by its first bytes.
            data[0] |= 0xc0;
            data[1..5].copy_from_slice(&[0, 0, 0, 1]);
        }
        socket.send_to(&data, test.remote).unwrap();
    }
    assert_complete(&test.ask(100_000, 1), 100_000);
    assert_eq!(test.sum(|stats| stats.driver.accepted), 1);
}

#[test]
fn a_worker_without_work_sleeps() {
    let ends = ends();
    let test = Test::new(&ends, &Serving::new(&ends, "bbr3"), 1);
    pause(Duration::from_millis(300), "a worker without work");
    test.server.shut_down(&ShutdownOptions::at_once(VarInt::from_u32(0)));
    // To learn that it is over, and nothing else.
    assert_eq!(test.server.join().unwrap()[0].wakes, 1);
}

#[test]
fn clients_show_their_addresses_if_asked_to() {
    let ends = ends();
    let test = Test::new(&ends, &Serving { retries: true, ..Serving::new(&ends, "cubic") }, 2);
    for _ in 0..4 {
        assert_complete(&test.ask(10_000, 1), 10_000);
    }
    assert_eq!(test.sum(|stats| stats.driver.retried), 4);
    assert_eq!(test.sum(|stats| stats.driver.accepted), 4);
}

#[test]
fn clients_beyond_the_limit_are_refused() {
    let ends = ends();
    let sockets = bind(LOCALHOST.parse().unwrap(), 1).unwrap();
    let mut config = ends.server_config();
    config.limits.connections = 3;
    let app = Serving::new(&ends, "cubic");
    let server = Workers::start(sockets, &config, move |_| app.clone()).unwrap();
    let remote = server.addresses()[0];
    let test = Test { clients: clients(&ends, LOCALHOST), server, remote };
    // More than the kernel keeps, so that none is done before the last one comes.
    let asked: Vec<_> = (0..8).map(|_| test.ask(50_000_000, 1)).collect();
    let ends: Vec<_> = asked.iter().map(end).collect();
    let refused = |(_, reason): &&(u64, ConnectionError)| {
        matches!(reason, ConnectionError::ConnectionClosed(close)
            if close.error_code == noq_proto::TransportErrorCode::CONNECTION_REFUSED)
    };
    assert_eq!(ends.iter().filter(refused).count(), 5, "{ends:?}");
    assert_eq!(test.sum(|stats| stats.driver.declined), 5);
    assert_eq!(ends.iter().filter(|(bytes, _)| *bytes == 50_000_000).count(), 3);
}

#[test]
fn clients_that_move_are_served_on_by_their_worker() {
    let ends = ends();
    let test = Test::new(&ends, &Serving::new(&ends, "bbr3"), 4);
    let told = test.ask(200_000_000, 1);
    assert!(matches!(told.recv(), Ok(Told::Begun(_))));
    let arrived = || test.clients.stats(0).socket.bytes_received;
    for _ in 0..8 {
        test.clients.rebind(0, UdpSocket::bind(LOCALHOST).unwrap()).unwrap();
        // The connection lives on its new address before it gets the next one.
        let before = arrived();
        until("it goes on", || arrived() > before + 2_000_000 || arrived() > 200_000_000);
    }
    assert_complete(&told, 200_000_000);
    assert_eq!(test.sum(|stats| stats.driver.accepted), 1);
    let handed = test.sum(|stats| stats.handed_over);
    assert!(handed > 0, "8 addresses, and all with the same worker of 4");
    until("all taken", || {
        let dropped = test.sum(|stats| stats.handed_over_dropped);
        test.sum(|stats| stats.taken_over) + dropped == test.sum(|stats| stats.handed_over)
    });
    assert_eq!(test.sum(|stats| stats.socket.receive_errors), 0);
}

#[test]
fn a_client_whose_buffer_overflows_gets_all_of_it_in_the_end() {
    let ends = ends();
    let serving = Serving::new(&ends, "cubic");
    let mut test = Test::new(&ends, &serving, 1);
    let mut config = Ends::client_config();
    config.socket.receive_buffer = 4096;
    let client = ends.client.clone();
    let make = move |_| Asking { client: client.clone() };
    let socket = UdpSocket::bind(LOCALHOST).unwrap();
    test.clients = Workers::start(vec![socket], &config, make).unwrap();
    assert_complete(&test.ask(5_000_000, 1), 5_000_000);
    until("empty", || test.sum(|stats| stats.driver.connections) == 0);
    assert!(serving.lost.load(Ordering::Relaxed) > 0, "nothing was lost");
}

#[test]
fn a_shutdown_under_load_tells_all_clients_and_leaves_no_thread() {
    let ends = ends();
    let test = Test::new(&ends, &Serving::new(&ends, "bbr3"), 2);
    let asked: Vec<_> = (0..20).map(|_| test.ask(1_000_000_000, 1)).collect();
    for told in &asked {
        assert!(matches!(told.recv(), Ok(Told::Begun(_))));
    }
    let reason = Bytes::from_static(b"maintenance");
    let drain = Duration::from_secs(20);
    let (code, finish) = (VarInt::from_u32(42), Duration::ZERO);
    test.server.shut_down(&ShutdownOptions { finish, code, reason: reason.clone(), drain });
    for told in &asked {
        let (_, why) = end(told);
        let ConnectionError::ApplicationClosed(close) = why else { panic!("{why}") };
        assert_eq!((close.error_code, close.reason), (code, reason.clone()));
    }
    let stats = test.server.join().unwrap();
    assert_eq!(stats.iter().map(|stats| stats.driver.accepted).sum::<u64>(), 20);
    assert_eq!(stats.iter().map(|stats| stats.driver.connections).sum::<u64>(), 0);
}

#[test]
fn a_graceful_shutdown_lets_clients_finish_and_refuses_new_ones() {
    let ends = ends();
    let test = Test::new(&ends, &Serving::new(&ends, "bbr3"), 1);
    let told = test.ask(100_000_000, 1);
    assert!(matches!(told.recv(), Ok(Told::Begun(_))));
    let (finish, drain) = (Duration::from_mins(2), Duration::from_secs(20));
    let code = VarInt::from_u32(1);
    test.server.shut_down(&ShutdownOptions { finish, code, reason: Bytes::new(), drain });
    let late = end(&test.ask(1000, 1)).1;
    assert!(matches!(late, ConnectionError::ConnectionClosed(_)), "{late}");
    assert_complete(&told, 100_000_000);
    let stats = test.server.join().unwrap();
    assert_eq!((stats[0].driver.accepted, stats[0].driver.declined), (1, 1));
}

#[test]
fn workers_that_are_dropped_are_gone() {
    // By names of their own: other tests have workers, too.
    let ends = ends();
    let sockets = bind(LOCALHOST.parse().unwrap(), 40).unwrap();
    let app = Serving::new(&ends, "bbr3");
    let is_there = || {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap();
        let names =
            tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
        names.filter(|name| name.trim() == "uncork-quic-39").count()
    };
    let server = Workers::start(sockets, &ends.server_config(), move |_| app.clone()).unwrap();
    until("a thread", || is_there() == 1);
    drop(server);
    assert_eq!(is_there(), 0);
}

/// Panics when a client comes.
struct Panicking;

impl App for Panicking {
    type State = ();
    type Command = ();

    fn incoming(&mut self, _: &Arrival<'_>) -> Verdict<()> {
        panic!("as this test wants");
    }
    fn connected(&mut self, _: &mut Turn<'_, ()>) {}
    fn closed(&mut self, _: &mut Turn<'_, ()>, _: &ConnectionError) {}
}

#[test]
fn health_names_the_worker_that_panicked() {
    let ends = ends();
    let sockets = bind(LOCALHOST.parse().unwrap(), 2).unwrap();
    let server = Workers::start(sockets, &ends.server_config(), |_| Panicking).unwrap();
    let health = server.health();
    assert_eq!(health.failures(), []);
    let clients = clients(&ends, LOCALHOST);
    let (tell, _told) = channel();
    let remote = server.addresses()[0];
    clients.tell(0, Ask { remote, bytes: 1, streams: 1, looks: true, tell });
    until("a failure", || !health.failures().is_empty());
    assert_eq!(health.failures().len(), 1, "{:?}", health.failures());
}

#[test]
fn health_is_good_after_a_shutdown() {
    let test = Test::new(&ends(), &Serving::new(&ends(), "cubic"), 2);
    let health = test.server.health();
    test.server.shut_down(&ShutdownOptions::at_once(VarInt::from_u32(0)));
    test.server.join().unwrap();
    assert_eq!(health.failures(), []);
}

#[test]
fn an_address_of_both_versions_serves_both() {
    let ends = ends();
    let sockets = match bind("[::]:0".parse().unwrap(), 1) {
        Ok(sockets) => sockets,
        Err(error) => return not_run(Capability::Ipv6, &error.to_string()),
    };
    let app = Serving::new(&ends, "cubic");
    let server = Workers::start(sockets, &ends.server_config(), move |_| app.clone()).unwrap();
    let port = server.addresses()[0].port();
    for (local, remote) in [("127.0.0.1:0", "127.0.0.1"), ("[::1]:0", "::1")] {
        let clients = clients(&ends, local);
        let remote = SocketAddr::new(remote.parse().unwrap(), port);
        let (tell, told) = channel();
        clients.tell(0, Ask { remote, bytes: 1_000_000, streams: 2, looks: true, tell });
        assert_complete(&told, 2_000_000);
    }
}
