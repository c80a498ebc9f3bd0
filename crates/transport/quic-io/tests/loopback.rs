//! Workers over the loopback device.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

mod common;

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use bytes::Bytes;
use common::{Ends, Report, Request, TestClient, TestServer, now, transport, until};
use noq_proto::{ConnectionError, VarInt};
use uncork_quic_io::{
    App, Arrival, ConnectionContext, Driver, Identity, Limits, Progress, ShutdownOptions, Socket,
    Verdict, Workers, bind,
};
use uncork_testkit::{Capability, not_run, pause};

const LOCALHOST: &str = "127.0.0.1:0";

/// A server on several threads, and clients on one.
struct Test {
    server: Workers<()>,
    clients: Workers<Request>,
    remote: SocketAddr,
}

impl Test {
    fn new(ends: &Ends, server_app: &TestServer, workers: usize) -> Self {
        let sockets = bind(LOCALHOST.parse().unwrap(), workers).unwrap();
        let app = server_app.clone();
        let server = Workers::start(sockets, &ends.server_config(), move |_| app.clone()).unwrap();
        let remote = server.addresses()[0];
        Self { clients: clients(ends, LOCALHOST), server, remote }
    }

    fn request(&self, bytes: u64, streams: u64) -> Receiver<Report> {
        let (report, reports) = channel();
        let request = Request { remote: self.remote, bytes, streams, verify: true, report };
        self.clients.send(0, request);
        reports
    }

    fn sum(&self, of: impl Fn(uncork_quic_io::Stats) -> u64) -> u64 {
        (0..self.server.count()).map(|worker| of(self.server.stats(worker))).sum()
    }
}

fn clients(ends: &Ends, address: &str) -> Workers<Request> {
    let socket = UdpSocket::bind(address).unwrap();
    let client = ends.client.clone();
    let make = move |_| TestClient { client: client.clone() };
    Workers::start(vec![socket], &Ends::client_config(), make).unwrap()
}

fn ends() -> Ends {
    Ends::new(&transport(Duration::from_mins(1)))
}

/// How a request ended: bytes received, and the reason.
fn end(reports: &Receiver<Report>) -> (u64, ConnectionError) {
    loop {
        match reports.recv_timeout(Duration::from_mins(5)).expect("an end") {
            Report::Started(_) => {}
            Report::Closed { bytes, is_valid, reason, finished } => {
                assert!(is_valid || finished == 0, "wrong bytes");
                return (bytes, reason);
            }
        }
    }
}

fn assert_complete(reports: &Receiver<Report>, bytes: u64) {
    assert_eq!(end(reports), (bytes, ConnectionError::LocallyClosed));
}

#[test]
fn a_hundred_megabytes_arrive_with_every_controller() {
    for cc in ["reno", "cubic", "bbr1", "bbr2", "bbr3", "prague"] {
        let ends = ends();
        let test = Test::new(&ends, &TestServer::new(&ends, cc), 1);
        assert_complete(&test.request(100_000_000, 1), 100_000_000);
        let stats = test.server.stats(0).socket;
        assert!(stats.datagrams_sent > stats.batches_sent, "{cc}: no segmentation");
        assert!(stats.bytes_sent > 100_000_000, "{cc}");
    }
}

#[test]
fn abandoned_connections_are_removed() {
    let ends = Ends::new(&transport(Duration::from_secs(2)));
    let test = Test::new(&ends, &TestServer::new(&ends, "bbr3"), 2);
    let client_app = TestClient { client: ends.client.clone() };
    let config = Identity::random().unwrap().endpoint_config(0);
    let mut driver = Driver::new(client_app, config, None, Limits::default(), false);
    let socket = UdpSocket::bind(LOCALHOST).unwrap();
    let mut socket = Socket::new(socket, Ends::client_config().socket).unwrap();
    let (report, reports) = channel();
    let request =
        Request { remote: test.remote, bytes: 1_000_000, streams: 1, verify: true, report };
    for _ in 0..1000 {
        driver.command(now(), request.clone());
    }
    // By then some connections are in their handshake, some transfer data, some are done.
    until("1000 connections", || {
        while socket.receive(|datagram| driver.receive(now(), datagram)) {}
        driver.expire(now());
        while driver.run_next(now(), &mut socket) == Progress::Worked {}
        test.sum(|stats| stats.driver.accepted) == 1000
    });
    drop((driver, socket));
    assert!(
        reports.try_iter().all(|report| !matches!(report, Report::Closed { is_valid: false, .. }))
    );
    until("all forgotten", || test.sum(|stats| stats.driver.connections) == 0);
    assert_complete(&test.request(10_000, 1), 10_000);
}

#[test]
fn connections_share_a_worker() {
    let ends = ends();
    let test = Test::new(&ends, &TestServer::new(&ends, "bbr3"), 2);
    let requests: Vec<_> = (0..50).map(|_| test.request(100_000, 10)).collect();
    for reports in &requests {
        assert_complete(reports, 1_000_000);
    }
    assert_eq!(test.sum(|stats| stats.driver.accepted), 50);
    until("empty", || test.sum(|stats| stats.driver.connections) == 0);
}

#[test]
fn a_large_transfer_does_not_keep_small_ones_waiting() {
    let ends = ends();
    let test = Test::new(&ends, &TestServer::new(&ends, "bbr3"), 1);
    let large = test.request(4_000_000_000, 1);
    assert!(matches!(large.recv(), Ok(Report::Started(_))));
    for _ in 0..20 {
        assert_complete(&test.request(10_000, 1), 10_000);
    }
    assert!(large.try_recv().is_err(), "4 GB were faster than 200 kB");
}

#[test]
fn datagrams_that_are_not_quic_do_no_harm() {
    let ends = ends();
    let test = Test::new(&ends, &TestServer::new(&ends, "bbr3"), 2);
    let socket = UdpSocket::bind(LOCALHOST).unwrap();
    let mut random = uncork_units::Rng::new(5, 0);
    for _ in 0..20_000 {
        let length = random.below(1500) as usize;
        let mut data: Vec<u8> = (0..length).map(|_| random.next_u64() as u8).collect();
        if random.below(2) == 0 && length > 5 {
            // Make it look like an Initial packet.
            data[0] |= 0xc0;
            data[1..5].copy_from_slice(&[0, 0, 0, 1]);
        }
        socket.send_to(&data, test.remote).unwrap();
    }
    assert_complete(&test.request(100_000, 1), 100_000);
    assert_eq!(test.sum(|stats| stats.driver.accepted), 1);
}

#[test]
fn a_worker_without_work_sleeps() {
    let ends = ends();
    let test = Test::new(&ends, &TestServer::new(&ends, "bbr3"), 1);
    pause(Duration::from_millis(300), "a worker without work");
    test.server.shut_down(&ShutdownOptions::at_once(VarInt::from_u32(0)));
    // Woken once, by the shutdown.
    assert_eq!(test.server.join().unwrap()[0].wakes, 1);
}

#[test]
fn clients_validate_their_address_after_a_retry() {
    let ends = ends();
    let test =
        Test::new(&ends, &TestServer { retries: true, ..TestServer::new(&ends, "cubic") }, 2);
    for _ in 0..4 {
        assert_complete(&test.request(10_000, 1), 10_000);
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
    let app = TestServer::new(&ends, "cubic");
    let server = Workers::start(sockets, &config, move |_| app.clone()).unwrap();
    let remote = server.addresses()[0];
    let test = Test { clients: clients(&ends, LOCALHOST), server, remote };
    // Larger than the kernel's buffers, so none finishes before the last one arrives.
    let requests: Vec<_> = (0..8).map(|_| test.request(50_000_000, 1)).collect();
    let ends: Vec<_> = requests.iter().map(end).collect();
    let refused = |(_, reason): &&(u64, ConnectionError)| {
        matches!(reason, ConnectionError::ConnectionClosed(close)
            if close.error_code == noq_proto::TransportErrorCode::CONNECTION_REFUSED)
    };
    assert_eq!(ends.iter().filter(refused).count(), 5, "{ends:?}");
    assert_eq!(test.sum(|stats| stats.driver.declined), 5);
    assert_eq!(ends.iter().filter(|(bytes, _)| *bytes == 50_000_000).count(), 3);
}

#[test]
fn a_client_that_migrates_stays_with_its_worker() {
    let ends = ends();
    let test = Test::new(&ends, &TestServer::new(&ends, "bbr3"), 4);
    let reports = test.request(200_000_000, 1);
    assert!(matches!(reports.recv(), Ok(Report::Started(_))));
    let arrived = || test.clients.stats(0).socket.bytes_received;
    for _ in 0..8 {
        test.clients.rebind(0, UdpSocket::bind(LOCALHOST).unwrap()).unwrap();
        // Wait for data on the new address before the next move.
        let before = arrived();
        until("it goes on", || arrived() > before + 2_000_000 || arrived() > 200_000_000);
    }
    assert_complete(&reports, 200_000_000);
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
fn a_client_with_an_overflowing_buffer_still_gets_all_data() {
    let ends = ends();
    let server_app = TestServer::new(&ends, "cubic");
    let mut test = Test::new(&ends, &server_app, 1);
    let mut config = Ends::client_config();
    config.socket.receive_buffer = 4096;
    let client = ends.client.clone();
    let make = move |_| TestClient { client: client.clone() };
    let socket = UdpSocket::bind(LOCALHOST).unwrap();
    test.clients = Workers::start(vec![socket], &config, make).unwrap();
    assert_complete(&test.request(5_000_000, 1), 5_000_000);
    until("empty", || test.sum(|stats| stats.driver.connections) == 0);
    assert!(server_app.lost.load(Ordering::Relaxed) > 0, "nothing was lost");
}

#[test]
fn a_shutdown_under_load_reaches_all_clients_and_leaves_no_thread() {
    let ends = ends();
    let test = Test::new(&ends, &TestServer::new(&ends, "bbr3"), 2);
    let requests: Vec<_> = (0..20).map(|_| test.request(1_000_000_000, 1)).collect();
    for reports in &requests {
        assert!(matches!(reports.recv(), Ok(Report::Started(_))));
    }
    let reason = Bytes::from_static(b"maintenance");
    let drain = Duration::from_secs(20);
    let (code, finish) = (VarInt::from_u32(42), Duration::ZERO);
    test.server.shut_down(&ShutdownOptions { finish, code, reason: reason.clone(), drain });
    for reports in &requests {
        let (_, why) = end(reports);
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
    let test = Test::new(&ends, &TestServer::new(&ends, "bbr3"), 1);
    let reports = test.request(100_000_000, 1);
    assert!(matches!(reports.recv(), Ok(Report::Started(_))));
    let (finish, drain) = (Duration::from_mins(2), Duration::from_secs(20));
    let code = VarInt::from_u32(1);
    test.server.shut_down(&ShutdownOptions { finish, code, reason: Bytes::new(), drain });
    let late = end(&test.request(1000, 1)).1;
    assert!(matches!(late, ConnectionError::ConnectionClosed(_)), "{late}");
    assert_complete(&reports, 100_000_000);
    let stats = test.server.join().unwrap();
    assert_eq!((stats[0].driver.accepted, stats[0].driver.declined), (1, 1));
}

#[test]
fn dropping_workers_ends_their_threads() {
    // Look for thread 39 by name: other tests run workers, too.
    let ends = ends();
    let sockets = bind(LOCALHOST.parse().unwrap(), 40).unwrap();
    let app = TestServer::new(&ends, "bbr3");
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

/// Panics on a connection request.
struct Panicking;

impl App for Panicking {
    type State = ();
    type Command = ();

    fn incoming(&mut self, _: &Arrival<'_>) -> Verdict<()> {
        panic!("as this test wants");
    }
    fn connected(&mut self, _: &mut ConnectionContext<'_, ()>) {}
    fn closed(&mut self, _: &mut ConnectionContext<'_, ()>, _: &ConnectionError) {}
}

#[test]
fn health_names_the_worker_that_panicked() {
    let ends = ends();
    let sockets = bind(LOCALHOST.parse().unwrap(), 2).unwrap();
    let server = Workers::start(sockets, &ends.server_config(), |_| Panicking).unwrap();
    let health = server.health();
    assert_eq!(health.failures(), []);
    let clients = clients(&ends, LOCALHOST);
    let (report, _reports) = channel();
    let remote = server.addresses()[0];
    clients.send(0, Request { remote, bytes: 1, streams: 1, verify: true, report });
    until("a failure", || !health.failures().is_empty());
    assert_eq!(health.failures().len(), 1, "{:?}", health.failures());
}

#[test]
fn health_is_good_after_a_shutdown() {
    let test = Test::new(&ends(), &TestServer::new(&ends(), "cubic"), 2);
    let health = test.server.health();
    test.server.shut_down(&ShutdownOptions::at_once(VarInt::from_u32(0)));
    test.server.join().unwrap();
    assert_eq!(health.failures(), []);
}

#[test]
fn a_dual_stack_address_serves_ipv4_and_ipv6() {
    let ends = ends();
    let sockets = match bind("[::]:0".parse().unwrap(), 1) {
        Ok(sockets) => sockets,
        Err(error) => return not_run(Capability::Ipv6, &error.to_string()),
    };
    let app = TestServer::new(&ends, "cubic");
    let server = Workers::start(sockets, &ends.server_config(), move |_| app.clone()).unwrap();
    let port = server.addresses()[0].port();
    for (local, remote) in [("127.0.0.1:0", "127.0.0.1"), ("[::1]:0", "::1")] {
        let clients = clients(&ends, local);
        let remote = SocketAddr::new(remote.parse().unwrap(), port);
        let (report, reports) = channel();
        clients.send(0, Request { remote, bytes: 1_000_000, streams: 2, verify: true, report });
        assert_complete(&reports, 2_000_000);
    }
}
