//! Careful Resume (RFC 9959) between connections of the kernel: what one observes, the next one to the same client network begins
//! with, and what that does on a path that is the same, or another by then.

use std::fmt::Debug;
use std::fs;
use std::io::Read;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::net::sockopt::set_tcp_congestion;
use rustix::net::{AddressFamily, SocketType};
use uncork_cc::{Bbr1, Bbr3, Cubic, NewReno, Prague, ResumePhase, Settings};
use uncork_diag::{CloseEvents, Connection};
use uncork_emu::{Emulation, EmulationSpec, HostSpec, Namespace};
use uncork_kernel::{Algorithm, LoadOptions, Loaded, Map, ResumeNetworks, ResumeStatus};
use uncork_path::{Buffer, PathSpec};
use uncork_testkit::wait_until;
use uncork_units::{Rate, TimeDelta};

use crate::glue::{RETREATED, Staged};
use crate::record::{ACK, ENDED, INIT, Record};
use crate::replay::{Native, Replayed, Start};
use crate::traffic::{LIMIT, PIECE, pieces, send, set_link, started};
use crate::{alone, loaded};

/// The server of a test: a namespace, a controller, and its calls so far.
struct Server<'a> {
    loaded: &'a Loaded,
    host: &'a Namespace,
    client: &'a Namespace,
    /// The controller's name for its connections.
    name: &'static str,
}

/// A connection from the other side.
#[derive(Clone, Copy)]
struct Fetch {
    /// The server's address.
    to: IpAddr,
    /// The client's; `None` for any.
    from: Option<IpAddr>,
    bytes: usize,
}

fn with_resume(algorithm: Algorithm) -> Result<Loaded, uncork_kernel::Error> {
    let resume = ResumeNetworks::new(64);
    Loaded::with(algorithm, LoadOptions { is_traced: true, resume })
}

fn emulation(path: PathSpec) -> Option<Emulation> {
    started(&EmulationSpec::over(path, 7))
}

fn path(mbit: u64, rtt_ms: u64, buffer: &str) -> PathSpec {
    let buffer = buffer.parse::<Buffer>().expect("a buffer");
    PathSpec::new(Rate::from_mbit(mbit), TimeDelta::from_millis(rtt_ms), buffer)
}

/// The client's receive buffers: smallest, initial, largest.
fn set_receive_buffers(client: &Namespace, buffers: &str) {
    let written = client.run(|| fs::write("/proc/sys/net/ipv4/tcp_rmem", buffers));
    written.expect("a thread").expect("a kernel with TCP");
}

const LARGE_BUFFERS: &str = "4096 6291456 16777216";

impl<'a> Server<'a> {
    fn new(loaded: &'a Loaded, emulation: &'a Emulation) -> Self {
        Self::of(loaded, emulation, 0)
    }

    /// Of this client host.
    fn of(loaded: &'a Loaded, emulation: &'a Emulation, client: usize) -> Self {
        let name = loaded.algorithm().resuming_name();
        Self { loaded, host: emulation.server(), client: &emulation.hosts()[client], name }
    }

    fn status(&self) -> ResumeStatus {
        self.loaded.resume_status().expect("its maps")
    }

    /// Opens a connection. The server's end comes first.
    fn open(&self, fetch: Fetch) -> (TcpStream, TcpStream) {
        let at = SocketAddr::from((fetch.to, 0));
        let listener =
            self.host.run(|| TcpListener::bind(at)).expect("a thread").expect("an address");
        set_tcp_congestion(&listener, self.name).expect("it is registered");
        let at = listener.local_addr().expect("an address");
        let client = self.client.run(|| connect(at, fetch.from)).expect("a thread");
        (listener.accept().expect("a client").0, client)
    }

    /// Serves one connection, until the kernel has forgotten it.
    fn serve(&self, fetch: Fetch) -> Duration {
        let (server, client) = self.open(fetch);
        let took = transfer(server, client, fetch.bytes);
        let ended = || wait_until("the server's sockets end", LIMIT, || sockets() == 0);
        self.host.run(ended).expect("a thread");
        took
    }
}

impl Server<'_> {
    /// Serves one connection. The result is what the kernel's event of the destroyed socket says of Careful Resume.
    fn serve_reported(&self, fetch: Fetch) -> Option<&'static str> {
        let mut events = self.host.run(CloseEvents::open).expect("a thread").expect("sock_diag");
        self.serve(fetch);
        let mut found = Vec::new();
        wait_until("the server's socket is reported", LIMIT, || {
            let mut take = |socket: &Connection| {
                let resume = socket.info.and_then(|info| info.resume);
                // On a loopback the client's socket is there, too.
                let is_servers =
                    socket.info.is_some_and(|info| info.bytes_acked > info.bytes_received);
                found.extend(is_servers.then(|| resume.map(|mark| mark.outcome.name())));
            };
            events.read(&mut take).expect("events");
            !found.is_empty()
        });
        found[0]
    }
}

/// TCP sockets with a controller in the calling thread's network namespace.
fn sockets() -> usize {
    const TIME_WAIT: &str = "06";
    let files = ["tcp", "tcp6"].map(|name| format!("/proc/thread-self/net/{name}"));
    let texts = files.iter().map(|file| fs::read_to_string(file).unwrap_or_default());
    let is_open = |line: &&str| line.split_whitespace().nth(3).is_some_and(|it| it != TIME_WAIT);
    texts.map(|text| text.lines().skip(1).filter(is_open).count()).sum()
}

fn connect(to: SocketAddr, from: Option<IpAddr>) -> TcpStream {
    let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = rustix::net::socket(family, SocketType::STREAM, None).expect("a socket");
    if let Some(from) = from {
        rustix::net::bind(&socket, &SocketAddr::from((from, 0))).expect("an address of the client");
    }
    rustix::net::connect(&socket, &to).expect("a server");
    TcpStream::from(socket)
}

/// Sends `bytes`, and closes both ends, the client's first: its end has TIME-WAIT. The result is for tables.
#[expect(clippy::disallowed_methods, reason = "the kernel's path is in real time")]
fn transfer(mut server: TcpStream, mut client: TcpStream, bytes: usize) -> Duration {
    client.set_read_timeout(Some(LIMIT)).expect("a timeout");
    server.set_write_timeout(Some(LIMIT)).expect("a timeout");
    std::thread::scope(|scope| {
        let begun = Instant::now();
        let reads = scope.spawn(move || {
            let mut piece = vec![0; PIECE];
            for length in pieces(bytes) {
                client.read_exact(&mut piece[..length]).expect("all of it");
            }
            begun.elapsed()
        });
        send(&mut server, bytes);
        let took = reads.join().expect("it reads");
        assert_eq!(server.read(&mut [0]).expect("the client closes"), 0);
        took
    })
}

/// The calls of connections, replayed by the native controller on the way.
struct Calls<C> {
    all: Vec<Record<C>>,
    native: Native<C>,
    replayed: Replayed,
    start: Start<C>,
}

impl<C: Staged + Debug> Calls<C> {
    fn new(start: Start<C>) -> Self {
        Self { all: Vec::new(), native: Native::new(), replayed: Replayed::default(), start }
    }

    /// What the kernel has made since the last time.
    fn take(&mut self, loaded: &Loaded) {
        self.all.clear();
        let mut trace = loaded.trace();
        while let Some(record) = trace.pop().expect("a queue") {
            self.native.repeat(Record::read(record), self.start, &mut self.replayed);
            self.all.push(Record::read(record));
        }
        assert_eq!(self.replayed.missed, 0);
    }

    fn one(&mut self, kind: u32) -> &mut Record<C> {
        let mut found = self.all.iter_mut().filter(|record| record.kind == kind);
        let one = found.next().expect("a call of this kind");
        assert!(found.next().is_none(), "one connection");
        one
    }

    /// The window that the connection began with from an earlier one; the window that it has left; whether it retreated.
    fn windows(&mut self) -> (u64, u64, bool) {
        let had = self.one(INIT).connection.call.saved_cwnd;
        let end = self.one(ENDED).connection.call;
        (had, end.saved_cwnd, end.flags & RETREATED != 0)
    }

    fn was_in(&mut self, phase: ResumePhase) -> bool {
        let acks = self.all.iter_mut().filter(|record| record.kind == ACK);
        acks.map(|ack| ack.connection.controller().snapshot().resume).any(|it| it == Some(phase))
    }

    /// Round trips until `bytes` were delivered.
    fn rounds(&mut self, bytes: u64) -> u64 {
        let mut delivered = 0;
        for ack in self.all.iter_mut().filter(|record| record.kind == ACK) {
            delivered += ack.connection.call.acked;
            if delivered >= bytes {
                return ack.connection.controller().snapshot().round_count;
            }
        }
        panic!("{delivered} bytes were delivered");
    }

    fn lost(&self) -> u64 {
        let acks = self.all.iter().filter(|record| record.kind == ACK);
        acks.map(|ack| ack.connection.call.lost).sum()
    }
}

/// Over 50 Mbit/s and 100 ms: 625 kB in a round trip.
fn next_begins_with_the_window_of_the_first<C: Staged + Debug>(
    algorithm: Algorithm,
    start: Start<C>,
) {
    const MEASURED: u64 = 1_000_000;
    let _alone = alone(algorithm);
    let Some(loaded) = loaded(with_resume, algorithm) else { return };
    let _registered = loaded.register().expect("it is free");
    let Some(emulation) = emulation(path(50, 100, "2bdp")) else { return };
    set_receive_buffers(emulation.client(), LARGE_BUFFERS);
    let (server, mut calls) = (Server::new(&loaded, &emulation), Calls::new(start));
    let fetch = Fetch { to: server.host.addresses().v4.into(), from: None, bytes: 10_000_000 };

    assert_eq!(server.serve_reported(fetch), None);
    calls.take(&loaded);
    let (had, left, _) = calls.windows();
    let first = calls.rounds(MEASURED);
    assert_eq!(had, 0);
    assert!((400_000..900_000).contains(&left), "{left} of about 625,000 bytes");

    assert_eq!(server.serve_reported(fetch), Some("used"));
    calls.take(&loaded);
    let (had, _, has_retreated) = calls.windows();
    let second = calls.rounds(MEASURED);
    println!(
        "{algorithm}: {left} bytes; {first} and {second} rounds until {MEASURED}; {:?}",
        server.status()
    );
    assert_eq!((had, has_retreated), (left, false));
    assert!(calls.was_in(ResumePhase::Unvalidated) && calls.was_in(ResumePhase::Validating));
    assert!(second + 1 < first, "{second} and {first} round trips");
    let ResumeStatus { kept, lent, in_use, expired, retreats, .. } = server.status();
    assert_eq!((kept, lent, in_use, expired, retreats), (2, 1, 0, 0, 0));
}

#[test]
fn next_connection_of_bbr1_begins_with_the_window_of_the_first() {
    next_begins_with_the_window_of_the_first(Algorithm::Bbr1, Bbr1::new);
}

#[test]
fn next_connection_of_bbr2_begins_with_the_window_of_the_first() {
    next_begins_with_the_window_of_the_first(Algorithm::Bbr2, Bbr3::v2);
}

#[test]
fn next_connection_of_bbr3_begins_with_the_window_of_the_first() {
    let start = |settings: &Settings| Bbr3::new(settings, false);
    next_begins_with_the_window_of_the_first(Algorithm::Bbr3, start);
}

#[test]
fn next_connection_of_cubic_begins_with_the_window_of_the_first() {
    next_begins_with_the_window_of_the_first(Algorithm::Cubic, Cubic::new);
}

#[test]
fn next_connection_of_prague_begins_with_the_window_of_the_first() {
    next_begins_with_the_window_of_the_first(Algorithm::Prague, Prague::new);
}

#[test]
fn next_connection_of_newreno_begins_with_the_window_of_the_first() {
    next_begins_with_the_window_of_the_first(Algorithm::Reno, NewReno::new);
}

/// Two clients in one network, as a path that shrinks from 40 to 3 Mbit/s: the second has a buffer of 20 packets.
fn shrinking() -> Option<Emulation> {
    let paths = vec![path(40, 40, "2bdp"), path(3, 40, "20p")];
    let hosts = vec![HostSpec::over(0), HostSpec::over(1)];
    let spec = EmulationSpec { hosts, ..EmulationSpec::over(paths[0].clone(), 7) };
    let emulation = started(&EmulationSpec { paths, ..spec })?;
    for client in emulation.hosts() {
        set_receive_buffers(client, LARGE_BUFFERS);
    }
    Some(emulation)
}

/// A connection that begins with the window of a path that has shrunk: it loses no more than that window, and the observation is gone.
fn shrunk_path_is_found_out<C: Staged + Debug>(algorithm: Algorithm, start: Start<C>) {
    let _alone = alone(algorithm);
    let Some(loaded) = loaded(with_resume, algorithm) else { return };
    let _registered = loaded.register().expect("it is free");
    let (Some(emulation), mut calls) = (shrinking(), Calls::new(start)) else { return };
    let [before, later] = [0, 1].map(|host| Server::of(&loaded, &emulation, host));
    let fetch = Fetch { to: before.host.addresses().v4.into(), from: None, bytes: 8_000_000 };

    before.serve(fetch);
    calls.take(&loaded);
    let (_, left, _) = calls.windows();
    assert!(left > 150_000, "{left} of about 200,000 bytes");

    let small = Fetch { bytes: 600_000, ..fetch };
    assert_eq!(later.serve_reported(small), Some("retreated"));
    calls.take(&loaded);
    let (had, _, has_retreated) = calls.windows();
    println!("{algorithm}: {left} bytes left, {} lost; {:?}", calls.lost(), later.status());
    assert_eq!((had, has_retreated), (left, true));
    assert!(calls.lost() <= left, "{} of {left} bytes", calls.lost());
    assert_eq!(later.status().retreats, 1);

    later.serve(small);
    calls.take(&loaded);
    assert_eq!(calls.windows().0, 0, "the observation is gone");
}

#[test]
fn shrunk_path_of_cubic_ends_in_a_safe_retreat() {
    shrunk_path_is_found_out(Algorithm::Cubic, Cubic::new);
}

#[test]
fn shrunk_path_of_bbr3_ends_in_a_safe_retreat() {
    shrunk_path_is_found_out(Algorithm::Bbr3, |settings| Bbr3::new(settings, false));
}

/// A host with NewReno, and its loopback as the path, so that it has many networks.
fn on_loopback(run: impl FnOnce(&Server<'_>)) {
    let _alone = alone(Algorithm::Reno);
    let Some(loaded) = loaded(with_resume, Algorithm::Reno) else { return };
    let _registered = loaded.register().expect("it is free");
    let Some(emulation) = emulation(path(10, 10, "1bdp")) else { return };
    set_link(emulation.server(), &["lo", "mtu", "1500", "up"]);
    // The receiver limits the window: no more than this is delivered in a round trip.
    set_receive_buffers(emulation.server(), "4096 131072 262144");
    let host = emulation.server();
    run(&Server { loaded: &loaded, host, client: host, name: Algorithm::Reno.resuming_name() });
}

/// Enough for ten windows of a loopback.
const MUCH: usize = 20_000_000;

fn local(to: &str, from: &str, bytes: usize) -> Fetch {
    let [to, from] = [to, from].map(|text| text.parse().expect("an address"));
    Fetch { to, from: Some(from), bytes }
}

impl Server<'_> {
    /// Whether a short connection begins with an observation.
    fn lends(&self, to: &str, from: &str) -> bool {
        let before = self.status().lent;
        self.serve(local(to, from, 1_000));
        self.status().lent > before
    }
}

#[test]
fn observation_is_for_one_pair_of_server_address_and_client_network() {
    on_loopback(|server| {
        server.serve(local("127.0.0.1", "127.9.1.1", MUCH));
        assert_eq!(server.status().kept, 1);
        assert!(server.lends("127.0.0.1", "127.9.1.1"), "the same client");
        assert!(server.lends("127.0.0.1", "127.9.1.200"), "a neighbour");
        assert!(!server.lends("127.0.0.1", "127.9.2.1"), "another network");
        assert!(!server.lends("127.0.0.2", "127.9.1.1"), "another address of the server");
        server.serve(local("::1", "::1", MUCH));
        assert!(server.lends("::1", "::1"), "IPv6");
        assert!(server.lends("127.0.0.1", "127.9.1.1"), "it is still there");
    });
}

/// Both kinds on one host, as the arms of a policy.
#[test]
fn connection_with_the_plain_name_observes_and_begins_as_ever() {
    on_loopback(|server| {
        let plain = Server { name: Algorithm::Reno.name(), ..*server };
        plain.serve(local("127.0.0.1", "127.9.1.1", MUCH));
        assert_eq!(server.status().kept, 1, "its observation is there");
        assert!(!plain.lends("127.0.0.1", "127.9.1.1"), "not for its own kind");
        assert!(server.lends("127.0.0.1", "127.9.1.1"), "for the other kind");
    });
}

/// The path is not compared before an initial window has arrived.
#[test]
fn close_event_of_a_short_connection_says_that_the_observation_was_unused() {
    on_loopback(|server| {
        let fetch = local("127.0.0.1", "127.9.1.1", 1_000);
        assert_eq!(server.serve_reported(Fetch { bytes: MUCH, ..fetch }), None);
        let plain = Server { name: Algorithm::Reno.name(), ..*server };
        assert_eq!(plain.serve_reported(fetch), None);
        assert_eq!(server.serve_reported(fetch), Some("unused"));
    });
}

#[test]
fn observation_is_lent_to_one_connection_at_a_time() {
    on_loopback(|server| {
        let fetch = local("127.0.0.1", "127.9.1.1", 1_000);
        server.serve(Fetch { bytes: MUCH, ..fetch });
        let one = server.open(fetch);
        assert_eq!((server.status().lent, server.status().in_use), (1, 0));
        let two = server.open(fetch);
        assert_eq!((server.status().lent, server.status().in_use), (1, 1));
        transfer(two.0, two.1, 1_000);
        transfer(one.0, one.1, 1_000);
        assert!(server.lends("127.0.0.1", "127.9.1.1"), "it was given back");
    });
}

/// RFC 9959 §3.2: one connection at a time, until its careful resume is over.
#[test]
fn open_connection_that_has_resumed_keeps_no_other_from_it() {
    on_loopback(|server| {
        let fetch = local("127.0.0.1", "127.9.1.1", MUCH);
        server.serve(fetch);
        let (mut open, mut client) = server.open(fetch);
        std::thread::scope(|scope| {
            let reads = || {
                for length in pieces(MUCH) {
                    client.read_exact(&mut vec![0; length]).expect("all of it");
                }
            };
            scope.spawn(reads);
            send(&mut open, MUCH);
        });
        let other = server.open(fetch);
        assert_eq!((server.status().lent, server.status().in_use), (2, 0));
        // The end of the first does not end the loan of the other.
        transfer(open, client, 1_000);
        let third = server.open(fetch);
        assert_eq!((server.status().lent, server.status().in_use), (2, 1));
        transfer(other.0, other.1, 1_000);
        transfer(third.0, third.1, 1_000);
    });
}

/// An initial window takes a round trip, and they carry less than ten.
#[test]
fn connections_that_carry_little_leave_nothing() {
    let _alone = alone(Algorithm::Reno);
    let Some(loaded) = loaded(with_resume, Algorithm::Reno) else { return };
    let _registered = loaded.register().expect("it is free");
    let Some(emulation) = emulation(path(100, 20, "1bdp")) else { return };
    let server = Server::new(&loaded, &emulation);
    let fetch = Fetch { to: server.host.addresses().v4.into(), from: None, bytes: 50_000 };
    for _ in 0..20 {
        server.serve(fetch);
    }
    let ResumeStatus { kept, lent, .. } = server.status();
    assert_eq!((kept, lent), (0, 0));
}

/// Two paths between the hosts of an emulation, next to the emulated one: a pair of devices each, and a route over one of them.
struct TwoPaths<'a>(&'a Emulation);

impl<'a> TwoPaths<'a> {
    const SERVER: &'static str = "10.77.0.1";
    const CLIENT: &'static str = "10.77.1.1";

    fn new(emulation: &'a Emulation) -> Self {
        let (server, client) = (emulation.server(), emulation.client());
        // A process names the client's namespace.
        let mut process =
            client.command("sleep").expect("a command").arg("60").spawn().expect("sleep");
        let number = process.id().to_string();
        for device in ["path0", "path1"] {
            let words =
                ["link", "add", device, "type", "veth", "peer", "name", device, "netns", &number];
            ip(server, &words);
        }
        process.kill().and_then(|()| process.wait()).expect("it ends");
        for (host, address) in [(server, Self::SERVER), (client, Self::CLIENT)] {
            let filter = || fs::write("/proc/sys/net/ipv4/conf/all/rp_filter", "0");
            host.run(filter).expect("a thread").expect("a setting");
            ip(host, &["link", "set", "lo", "up"]);
            ip(host, &["address", "add", address, "dev", "lo"]);
            for device in ["path0", "path1"] {
                ip(host, &["link", "set", device, "up"]);
            }
            set_receive_buffers(host, "4096 131072 262144");
        }
        Self(emulation)
    }

    /// All packets take this device from now on.
    fn take(&self, device: &str) {
        for (host, from, to) in [
            (self.0.server(), Self::SERVER, Self::CLIENT),
            (self.0.client(), Self::CLIENT, Self::SERVER),
        ] {
            ip(host, &["route", "replace", to, "dev", device, "src", from]);
        }
    }
}

fn ip(host: &Namespace, words: &[&str]) {
    let done = host.run(|| Command::new("ip").args(words).status());
    assert!(done.expect("a thread").expect("iproute2").success(), "ip {words:?}");
}

#[test]
fn observation_is_of_the_interface_that_had_the_connection() {
    let _alone = alone(Algorithm::Reno);
    let Some(loaded) = loaded(with_resume, Algorithm::Reno) else { return };
    let _registered = loaded.register().expect("it is free");
    let Some(emulation) = emulation(path(10, 10, "1bdp")) else { return };
    let (server, paths) = (Server::new(&loaded, &emulation), TwoPaths::new(&emulation));
    let much = local(TwoPaths::SERVER, TwoPaths::CLIENT, MUCH);
    let lends = || server.lends(TwoPaths::SERVER, TwoPaths::CLIENT);

    paths.take("path0");
    server.serve(much);
    assert_eq!(server.status().kept, 1);
    assert!(lends());
    paths.take("path1");
    assert!(!lends(), "another interface");
    paths.take("path0");
    assert!(lends(), "the first again");

    let (kept, (end, other)) = (server.status().kept, server.open(much));
    paths.take("path1");
    transfer(end, other, MUCH);
    assert!(!lends(), "the interface changed meanwhile: it is of neither");
    assert_eq!(server.status().kept, kept);
}

/// Bytes that the kernel has taken for a map.
fn memory_of(map: &Map) -> u64 {
    let about = format!("/proc/self/fdinfo/{}", map.as_fd().as_raw_fd());
    let about = fs::read_to_string(about).expect("an open file");
    let line = about.lines().find_map(|line| line.strip_prefix("memlock:")).expect("a map");
    line.trim().parse().expect("a number")
}

/// Fills the map for `networks` with four times as many, and returns its memory.
fn fill(networks: u32) -> Option<u64> {
    let load = |networks| {
        let options =
            LoadOptions { resume: ResumeNetworks::new(networks), ..LoadOptions::default() };
        Loaded::with(Algorithm::Reno, options)
    };
    let probe = loaded(Loaded::new, Algorithm::Reno)?;
    drop(probe);
    let loaded = load(networks).expect("it loads");
    let map = loaded.observations();
    let before = memory_of(map);
    let keys: Vec<[u64; 2]> = (0..4 * u64::from(networks)).map(|network| [network, 1]).collect();
    let values = vec![[1_u64, 2, 3]; keys.len()];
    map.fill(&keys, &values).expect("the least recently used leave");
    assert_eq!(memory_of(map), before);
    Some(before)
}

#[test]
fn memory_is_taken_at_once_and_more_networks_do_not_grow_it() {
    let Some(bytes) = fill(1 << 16) else { return };
    assert!(bytes < 16 << 20, "{bytes} bytes");
}

/// The memory of a million networks: a line of `docs/evidence/kernel.md`.
#[test]
#[ignore = "a table"]
fn table_of_memory() {
    for networks in [1 << 16, 1 << 20] {
        let Some(bytes) = fill(networks) else { return };
        println!(
            "| {networks} | {:.1} MB | {} bytes per network |",
            bytes as f64 / 1e6,
            bytes / u64::from(networks)
        );
    }
}

/// What the path that has shrunk costs with an observation of what it was, and without one: completion times of 600 kB, and what was
/// lost.
#[test]
#[ignore = "a table"]
fn table_of_a_shrunk_path() {
    println!("| controller | begins | 600 kB, s | lost, kB |");
    println!("|---|---|--:|--:|");
    shrunk::<Bbr1>(Algorithm::Bbr1, Bbr1::new);
    shrunk::<Bbr3>(Algorithm::Bbr3, |settings| Bbr3::new(settings, false));
    shrunk::<Cubic>(Algorithm::Cubic, Cubic::new);
    shrunk::<NewReno>(Algorithm::Reno, NewReno::new);
}

fn shrunk<C: Staged + Debug>(algorithm: Algorithm, start: Start<C>) {
    for (name, begins) in [("from 40 Mbit/s", true), ("as ever", false)] {
        let (mut took, mut lost) = (Vec::new(), Vec::new());
        for _ in 0..5 {
            let _alone = alone(algorithm);
            let Some(loaded) = loaded(with_resume, algorithm) else { return };
            let _registered = loaded.register().expect("it is free");
            let (Some(emulation), mut calls) = (shrinking(), Calls::new(start)) else { return };
            let [before, later] = [0, 1].map(|host| Server::of(&loaded, &emulation, host));
            let to = before.host.addresses().v4.into();
            if begins {
                before.serve(Fetch { to, from: None, bytes: 8_000_000 });
            }
            calls.take(&loaded);
            took.push(later.serve(Fetch { to, from: None, bytes: 600_000 }).as_secs_f64());
            calls.take(&loaded);
            assert_eq!(calls.windows().0 > 0, begins);
            lost.push(calls.lost() as f64 / 1e3);
        }
        let [took, lost] = [took, lost].map(|mut all| {
            all.sort_by(f64::total_cmp);
            format!("{:.2} ({:.2} to {:.2})", all[2], all[0], all[4])
        });
        println!("| {algorithm} | {name} | {took} | {lost} |");
    }
}

/// The kernel's statistics of programs, while this exists.
struct Statistics(String);

impl Statistics {
    const FILE: &'static str = "/proc/sys/kernel/bpf_stats_enabled";

    fn on() -> Self {
        let was = fs::read_to_string(Self::FILE).expect("Linux 5.1");
        fs::write(Self::FILE, "1").expect("root");
        Self(was)
    }
}

impl Drop for Statistics {
    fn drop(&mut self) {
        let _ = fs::write(Self::FILE, &self.0);
    }
}

/// Nanoseconds of a call of these programs: 100 MB and 40 short connections over the loopback.
fn nanoseconds(algorithm: Algorithm, resume: Option<ResumeNetworks>) -> Option<[f64; 3]> {
    let _alone = alone(algorithm);
    Loaded::new(algorithm).ok()?;
    let loaded = Loaded::with(algorithm, LoadOptions { resume, ..LoadOptions::default() })
        .expect("it loads");
    let _registered = loaded.register().expect("it is free");
    let emulation = emulation(path(10, 10, "1bdp"))?;
    set_link(emulation.server(), &["lo", "mtu", "1500", "up"]);
    let name = if resume.is_some() { algorithm.resuming_name() } else { algorithm.name() };
    let host = emulation.server();
    let server = Server { loaded: &loaded, host, client: host, name };
    let much = local("127.0.0.1", "127.9.1.1", 100_000_000);
    server.serve(much);
    for _ in 0..40 {
        server.serve(Fetch { bytes: 1_000, ..much });
    }
    let times = loaded.run_times().expect("its programs");
    let of = |name| {
        times.iter().find(|(one, ..)| *one == name).map(|(_, runs, ns)| *ns as f64 / *runs as f64)
    };
    Some(["cong_control", "start", "release"].map(|name| of(name).expect("it ran")))
}

/// What Careful Resume costs: a table of `docs/evidence/kernel.md`.
#[test]
#[ignore = "a table"]
fn table_of_cost() {
    let _statistics = Statistics::on();
    println!("| controller | Careful Resume | ns per ACK | per start | per end |");
    println!("|---|---|--:|--:|--:|");
    for algorithm in [Algorithm::Cubic, Algorithm::Bbr3] {
        let mut rounds = [const { Vec::new() }; 2];
        for _ in 0..5 {
            for (all, resume) in rounds.iter_mut().zip([None, Some(ResumeNetworks::DEFAULT)]) {
                let Some(each) = nanoseconds(algorithm, resume) else { return };
                all.push(each);
            }
        }
        for (all, name) in rounds.iter().zip(["no", "yes"]) {
            let cells = [0, 1, 2].map(|column| {
                let mut all: Vec<f64> = all.iter().map(|each| each[column]).collect();
                all.sort_by(f64::total_cmp);
                format!("{:.0} ({:.0} to {:.0})", all[2], all[0], all[4])
            });
            println!("| {algorithm} | {name} | {} |", cells.join(" | "));
        }
    }
}

/// Completion times of 10 MB over 100 Mbit/s and 100 ms, after a connection of 20 MB and without one before: the table of
/// `docs/evidence/kernel.md`.
#[test]
#[ignore = "a table"]
fn table_of_first_and_next_connections() {
    println!("| controller | receive buffers of the client | first, s | next, s |");
    println!("|---|---|--:|--:|");
    for algorithm in [Algorithm::Cubic, Algorithm::Bbr3, Algorithm::Reno, Algorithm::Bbr1] {
        for (name, buffers) in
            [("as Linux has them", "4096 131072 6291456"), ("large", LARGE_BUFFERS)]
        {
            let [mut first, mut next] = [const { Vec::new() }; 2];
            for _ in 0..5 {
                let _alone = alone(algorithm);
                let load = |algorithm| {
                    let options =
                        LoadOptions { resume: ResumeNetworks::new(64), ..LoadOptions::default() };
                    Loaded::with(algorithm, options)
                };
                let Some(loaded) = loaded(load, algorithm) else { return };
                let _registered = loaded.register().expect("it is free");
                let Some(emulation) = emulation(path(100, 100, "2bdp")) else { return };
                set_receive_buffers(emulation.client(), buffers);
                let server = Server::new(&loaded, &emulation);
                let fetch =
                    Fetch { to: server.host.addresses().v4.into(), from: None, bytes: 10_000_000 };
                first.push(server.serve(fetch));
                server.serve(Fetch { bytes: 30_000_000, ..fetch });
                next.push(server.serve(fetch));
                assert!(server.status().lent > 0, "{algorithm}: {:?}", server.status());
            }
            let [first, next] = [first, next].map(|mut all| {
                all.sort_unstable();
                format!(
                    "{:.2} ({:.2} to {:.2})",
                    all[2].as_secs_f64(),
                    all[0].as_secs_f64(),
                    all[4].as_secs_f64()
                )
            });
            println!("| {algorithm} | {name} | {first} | {next} |");
        }
    }
}
