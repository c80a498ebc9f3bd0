//! Downloads over an emulated path by the kernel's TCP, and what the kernel says of them.

use std::collections::HashMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::process::Command;
use std::thread;
use std::time::Duration;

use rustix::net::sockopt::set_tcp_congestion;
use rustix::net::{AddressFamily, SocketType};
use uncork_diag::{Diag, TcpInfo};
use uncork_emu::{Direction, EmuError, Emulation, EmulationSpec, Fate, Namespace, PacketRecord};
use uncork_kernel::{Algorithm, Loaded};
use uncork_path::{Buffer, Ecn, JitterDistribution, JitterSpec, LossSpec, PathSpec, QueueSpec};
use uncork_testkit::{Capability, not_run, pause, wait_until};
use uncork_units::{Rate, Time, TimeDelta};

pub(crate) const LIMIT: Duration = Duration::from_mins(1);
/// Bytes that are written or read at a time.
pub(crate) const PIECE: usize = 1 << 18;
/// Between two bursts.
const PAUSE: Duration = Duration::from_millis(300);
/// A packet without data: headers of IP and TCP with all options.
const LARGEST_EMPTY: u32 = 80;

/// Downloads at the same time over one path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Downloads {
    pub(crate) rate_mbit: u64,
    pub(crate) rtt_ms: u64,
    pub(crate) loss: &'static str,
    pub(crate) buffer: &'static str,
    pub(crate) queue: &'static str,
    /// Packets are late by up to this much, and overtake each other.
    pub(crate) jitter_ms: u64,
    pub(crate) flows: usize,
    pub(crate) bytes: usize,
    /// The bursts of each flow, `bytes` together, with pauses between.
    pub(crate) bursts: usize,
    /// The server's device gets this MTU after a third of the first burst.
    pub(crate) later_mtu: Option<u32>,
    /// Server and client are one host: the path is its loopback, with this MTU.
    pub(crate) local_mtu: Option<u32>,
    pub(crate) ecn: EcnMode,
}

/// What the clients negotiate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EcnMode {
    None,
    /// RFC 3168.
    Classic,
    /// RFC 9768, where the listener has a controller that asks for it.
    Accurate,
}

/// What the kernel counted while it served.
#[derive(Debug)]
pub(crate) struct Served {
    /// Of each connection at its start, and when everything was acknowledged.
    pub(crate) infos: Vec<[TcpInfo; 2]>,
    /// The server's counters of TCP (`/proc/net/netstat`).
    counters: HashMap<String, u64>,
    /// Packets with data that the path dropped.
    pub(crate) dropped: u64,
    /// Packets with data in their order: their ECN fields when they left the server, and at their end.
    pub(crate) fields: Vec<(Ecn, Ecn)>,
    /// How long the path took for each packet with data that arrived, longer than for the fastest; in their order.
    pub(crate) queueing: Vec<TimeDelta>,
    /// From the first packet with data to the last arrival.
    pub(crate) took: TimeDelta,
}

/// Starts an emulation; `None`, with a message, if the machine does not permit namespaces or TUN devices.
pub(crate) fn started(spec: &EmulationSpec) -> Option<Emulation> {
    match Emulation::start(spec) {
        Ok(emulation) => Some(emulation),
        Err(error @ EmuError::System { .. }) => {
            not_run(Capability::Netns, &error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

impl Served {
    pub(crate) fn counter(&self, name: &str) -> u64 {
        *self.counters.get(name).unwrap_or_else(|| panic!("the kernel does not count {name}"))
    }
}

impl Downloads {
    pub(crate) const fn new(
        rate_mbit: u64,
        loss: &'static str,
        flows: usize,
        bytes: usize,
    ) -> Self {
        Self {
            rate_mbit,
            rtt_ms: 50,
            loss,
            buffer: "1bdp",
            queue: "droptail",
            jitter_ms: 0,
            flows,
            bytes,
            bursts: 1,
            later_mtu: None,
            local_mtu: None,
            ecn: EcnMode::Classic,
        }
    }

    fn spec(self) -> EmulationSpec {
        let (rate, rtt) = (Rate::from_mbit(self.rate_mbit), TimeDelta::from_millis(self.rtt_ms));
        let mut path = PathSpec::new(rate, rtt, self.buffer.parse::<Buffer>().expect("a buffer"));
        path.loss = self.loss.parse::<LossSpec>().expect("a loss");
        path.link.queue = self.queue.parse::<QueueSpec>().expect("a queue");
        let (distribution, max) =
            (JitterDistribution::Uniform, TimeDelta::from_millis(self.jitter_ms));
        path.jitter =
            (self.jitter_ms > 0).then_some(JitterSpec { distribution, max, reorder: true });
        EmulationSpec { record: true, ..EmulationSpec::over(path, 7) }
    }

    /// Runs them with a controller. Returns `None`, with a message, where namespaces are not permitted.
    pub(crate) fn run(self, loaded: &Loaded) -> Option<Served> {
        self.run_with(loaded, |_| {})
    }

    /// The same without programs at the server's devices.
    pub(crate) fn run_without_ect1(self, loaded: &Loaded) -> Option<Served> {
        self.run_over(loaded, |_| {}, false)
    }

    /// The same. `meanwhile` gets the connection after a third of the first burst.
    pub(crate) fn run_with(
        self,
        loaded: &Loaded,
        meanwhile: impl Fn(&TcpStream) + Sync,
    ) -> Option<Served> {
        self.run_over(loaded, meanwhile, true)
    }

    fn run_over(
        self,
        loaded: &Loaded,
        meanwhile: impl Fn(&TcpStream) + Sync,
        ect1: bool,
    ) -> Option<Served> {
        let emulation = started(&self.spec())?;
        let attach = || if ect1 { loaded.send_ect1() } else { Ok(None) };
        let devices = emulation.server().run(attach).expect("a thread").expect("programs");
        let infos = self.serve_all(&emulation, loaded.algorithm(), &meanwhile);
        drop(devices);
        let counters = emulation.server().run(counters).expect("a thread");
        let (_, packets) = emulation.stop_with_packets().expect("a run");
        let dropped = packets.iter().filter(|packet| is_dropped_data(packet)).count() as u64;
        let data = packets.iter().filter(|packet| is_data(packet));
        let fields = data.filter_map(|packet| Some((packet.arrival.ecn, packet.end?.1))).collect();
        let (queueing, took) = delays(&packets);
        Some(Served { infos, counters, dropped, fields, queueing, took })
    }

    fn serve_all(
        &self,
        emulation: &Emulation,
        controller: Algorithm,
        meanwhile: &(impl Fn(&TcpStream) + Sync),
    ) -> Vec<[TcpInfo; 2]> {
        let server = emulation.server();
        let client = if self.local_mtu.is_some() { server } else { emulation.client() };
        if let Some(mtu) = self.local_mtu {
            set_link(server, &["lo", "mtu", &mtu.to_string(), "up"]);
        }
        for host in [server, client] {
            let mode = if self.ecn == EcnMode::None { "0" } else { "1" };
            let written = host.run(|| fs::write("/proc/sys/net/ipv4/tcp_ecn", mode));
            written.expect("a thread").expect("a kernel with ECN");
        }
        let at = SocketAddr::from((server.addresses().v4, 0));
        let listener = server.run(|| TcpListener::bind(at)).expect("a thread").expect("a listener");
        // The listener's controller decides what is negotiated.
        set_controller(&listener, controller);
        let at = listener.local_addr().expect("an address");
        let client_controller = (self.ecn == EcnMode::Accurate).then_some(controller);
        thread::scope(|scope| {
            let mut flows = Vec::new();
            for _ in 0..self.flows {
                scope.spawn(move || {
                    let done = client.run(|| download(at, self.bytes, client_controller));
                    done.expect("a thread");
                });
                let (stream, _) = listener.accept().expect("a client");
                flows.push(scope.spawn(move || self.serve(stream, controller, server, meanwhile)));
            }
            flows.into_iter().map(|flow| flow.join().expect("it ends")).collect()
        })
    }

    fn serve(
        &self,
        mut stream: TcpStream,
        controller: Algorithm,
        host: &Namespace,
        meanwhile: &impl Fn(&TcpStream),
    ) -> [TcpInfo; 2] {
        let start = acknowledged(&stream, host);
        set_controller(&stream, controller);
        stream.set_write_timeout(Some(LIMIT)).expect("a timeout");
        let burst = self.bytes / self.bursts;
        for number in 0..self.bursts {
            if number > 0 {
                acknowledged(&stream, host);
                pause(PAUSE, "the application writes again");
            }
            send(&mut stream, burst / 3);
            if number == 0 {
                meanwhile(&stream);
            }
            if let Some(mtu) = self.later_mtu {
                set_link(host, &["uncork0", "mtu", &mtu.to_string()]);
            }
            send(&mut stream, burst - burst / 3);
        }
        let end = acknowledged(&stream, host);
        // The client closes when it has read everything, which a reset before would keep from it.
        stream.set_read_timeout(Some(LIMIT)).expect("a timeout");
        assert_eq!(stream.read(&mut [0]).expect("it closes"), 0);
        // Nothing follows: a lost FIN would be repaired after the figures were taken.
        let reset = rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO));
        reset.expect("a socket");
        [start, end]
    }
}

/// Waits until everything written was acknowledged.
pub(crate) fn acknowledged(stream: &TcpStream, host: &Namespace) -> TcpInfo {
    let (local, remote) = (stream.local_addr(), stream.peer_addr());
    let (local, remote) = (local.expect("a socket"), remote.expect("a connection"));
    let mut info = None;
    let asked = host.run(|| {
        let mut diag = Diag::open().expect("sock_diag");
        wait_until("everything is acknowledged", LIMIT, || {
            let found = diag.find(local, remote).expect("an answer").expect("a connection");
            info = found.info.filter(|_| found.wqueue == 0);
            info.is_some()
        });
    });
    asked.expect("a thread");
    info.expect("it was waited for")
}

pub(crate) fn set_link(host: &Namespace, words: &[&str]) {
    let set = host.run(|| Command::new("ip").args(["link", "set", "dev"]).args(words).status());
    assert!(set.expect("a thread").expect("iproute2").success());
}

/// The two kinds of lines alternate: names, and their values.
fn counters() -> HashMap<String, u64> {
    let text = fs::read_to_string("/proc/thread-self/net/netstat").expect("it is there");
    let lines: Vec<_> = text.lines().collect();
    let pairs = lines
        .chunks_exact(2)
        .flat_map(|pair| pair[0].split_whitespace().zip(pair[1].split_whitespace()));
    pairs.filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?))).collect()
}

/// The queueing delays of packets with data, and how long all took.
fn delays(packets: &[PacketRecord]) -> (Vec<TimeDelta>, TimeDelta) {
    let arrived = packets.iter().filter(|packet| is_data(packet)).filter_map(|packet| {
        let (Fate::Arrives(at), _) = packet.end? else { return None };
        Some((packet.came, at))
    });
    let arrived: Vec<_> = arrived.collect();
    let all = arrived.iter().map(|(came, at)| at.since(*came));
    let base = all.clone().min().unwrap_or_default();
    let first = arrived.first().map_or(Time::ZERO, |(came, _)| *came);
    let last = arrived.iter().map(|(_, at)| *at).max().unwrap_or(first);
    (all.map(|delay| delay - base).collect(), last.since(first))
}

fn is_data(packet: &PacketRecord) -> bool {
    packet.arrival.direction == Direction::Down && packet.arrival.bytes > LARGEST_EMPTY
}

fn is_dropped_data(packet: &PacketRecord) -> bool {
    is_data(packet) && matches!(packet.end, Some((Fate::Dropped(_), _)))
}

pub(crate) fn set_controller(socket: &impl AsFd, controller: Algorithm) {
    set_tcp_congestion(socket, controller.name()).expect("it is registered");
}

fn download(server: SocketAddr, bytes: usize, controller: Option<Algorithm>) {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None);
    let socket = socket.expect("a socket");
    if let Some(controller) = controller {
        set_controller(&socket, controller);
    }
    rustix::net::connect(&socket, &server).expect("a server");
    let mut stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(LIMIT)).expect("a timeout");
    let mut piece = vec![0; PIECE];
    for length in pieces(bytes) {
        stream.read_exact(&mut piece[..length]).expect("all of it");
    }
}

pub(crate) fn send(stream: &mut TcpStream, bytes: usize) {
    let piece = vec![1; PIECE];
    for length in pieces(bytes) {
        stream.write_all(&piece[..length]).expect("it is read");
    }
}

/// The lengths of pieces that are `bytes` together. Memory for all of them would cost more than TCP.
pub(crate) fn pieces(bytes: usize) -> impl Iterator<Item = usize> {
    (0..bytes).step_by(PIECE).map(move |at| PIECE.min(bytes - at))
}
