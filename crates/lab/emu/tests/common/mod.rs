//! Shared helpers of tests with real namespaces.
#![allow(dead_code, reason = "no test file uses all of it")]
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

use std::fs;
use std::io::Write;
use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::Duration;

use uncork_emu::{EmuError, Emulation, EmulationSpec, Namespace, PacketRecord};
use uncork_path::{Buffer, PathSpec};
use uncork_testkit::{Capability, not_run, pause};
use uncork_units::{Rate, TimeDelta};

/// Starts an emulation; `None`, with a message, if the machine does not permit namespaces or TUN
/// devices.
pub(crate) fn start(spec: &EmulationSpec) -> Option<Emulation> {
    match Emulation::start(spec) {
        Ok(emulation) => Some(emulation),
        Err(error @ EmuError::System { .. }) => {
            not_run(Capability::Netns, &error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// A drop-tail path with a buffer of this many packets.
pub(crate) fn path(rate_mbit: u64, rtt_ms: u64, packets: u64) -> EmulationSpec {
    let rtt = TimeDelta::from_millis(rtt_ms);
    let path = PathSpec::new(Rate::from_mbit(rate_mbit), rtt, Buffer::Packets(packets));
    EmulationSpec::over(path, 1)
}

/// The addresses of a host, IPv4 and, if available, IPv6.
pub(crate) fn addresses(host: &Namespace) -> Vec<IpAddr> {
    let addresses = host.addresses();
    [addresses.v4.into()].into_iter().chain(addresses.v6.map(IpAddr::from)).collect()
}

/// A UDP socket with a timeout.
pub(crate) fn udp(host: &Namespace, address: IpAddr, port: u16) -> UdpSocket {
    let socket = host.run(|| UdpSocket::bind((address, port))).unwrap().unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    socket
}

/// A connection from `client` to `server`: the client's stream and the server's.
pub(crate) fn connect(
    client: &Namespace,
    server: &Namespace,
    address: IpAddr,
) -> (TcpStream, TcpStream) {
    let listener = server.run(|| TcpListener::bind((address, 0))).unwrap().unwrap();
    let address = listener.local_addr().unwrap();
    let far = thread::spawn(move || listener.accept().unwrap().0);
    let near = client.run(|| TcpStream::connect(address)).unwrap().unwrap();
    (near, far.join().unwrap())
}

/// Sends `bytes` from `from` to `to` over TCP, and waits until all have arrived.
pub(crate) fn transfer(from: TcpStream, mut to: TcpStream, bytes: usize) {
    let sender = thread::spawn(move || {
        let mut from = from;
        from.write_all(&vec![7; bytes]).unwrap();
    });
    let arrived = std::io::copy(&mut to, &mut std::io::sink()).unwrap();
    sender.join().unwrap();
    assert_eq!(arrived, bytes as u64);
}

/// Records real traffic in both directions: two hosts, TCP with ECN, datagrams.
pub(crate) fn recorded(spec: &EmulationSpec) -> Option<Vec<PacketRecord>> {
    let emulation = start(spec)?;
    let address = emulation.server().addresses().v4.into();
    for host in emulation.hosts().iter().chain([emulation.server()]) {
        sysctl(host, "ipv4/tcp_ecn", "1");
        sysctl(host, "ipv4/tcp_max_reordering", "300");
    }
    thread::scope(|scope| {
        for host in emulation.hosts() {
            scope.spawn(|| {
                let (near, far) = connect(host, emulation.server(), address);
                transfer(far, near, 1_500_000);
                let (near, far) = connect(host, emulation.server(), address);
                transfer(near, far, 300_000);
            });
        }
        let near = emulation.client().addresses().v4.into();
        let (server, client) =
            (udp(emulation.server(), address, 1), udp(emulation.client(), near, 2));
        for _ in 0..500 {
            server.send_to(&[0; 1000], (near, 2)).expect("sent");
            client.send_to(&[0; 100], (address, 3)).expect("sent");
            pause(Duration::from_millis(1), "datagrams throughout the transfers");
        }
    });
    Some(emulation.stop_with_packets().expect("a run").1)
}

/// Sets a value of /proc/sys/net in the namespace.
pub(crate) fn sysctl(host: &Namespace, key: &str, value: &str) {
    host.run(|| fs::write(format!("/proc/sys/net/{key}"), value)).unwrap().unwrap();
}

/// A counter of the kernel in the namespace: `InCEPkts` of IPv4, or `Ip6InCEPkts`.
pub(crate) fn counter(host: &Namespace, name: &str) -> u64 {
    let read = |file: &str| fs::read_to_string(format!("/proc/thread-self/net/{file}")).unwrap();
    host.run(|| {
        let v6 = read("snmp6");
        let pair = |line: &str| line.strip_prefix(name)?.trim().parse().ok();
        let tables = [read("netstat"), read("snmp")].concat();
        let lines: Vec<&str> = tables.lines().collect();
        let in_tables = || {
            lines.chunks_exact(2).find_map(|table| {
                let column = table[0].split_whitespace().position(|word| word == name)?;
                table[1].split_whitespace().nth(column)?.parse().ok()
            })
        };
        v6.lines().find_map(pair).or_else(in_tables)
    })
    .unwrap()
    .unwrap_or_else(|| panic!("the kernel counts no {name}"))
}
