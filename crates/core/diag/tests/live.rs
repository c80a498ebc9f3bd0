//! Tests against the running kernel, over loopback.
#![cfg(target_os = "linux")]

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};

use rustix::net::sockopt::set_tcp_congestion;
use uncork_diag::{Connection, Diag, Family, Query, StateSet, TcpInfo, TcpState};
use uncork_testkit::{Capability, not_run};
use uncork_units::{Rate, TimeDelta};

const BYTES: usize = 1_000_000;

/// Both ends of a connection over IPv4 to a listener on `address`.
fn connected(address: SocketAddr) -> (TcpListener, TcpStream, TcpStream) {
    let listener = TcpListener::bind(address).expect("loopback");
    let port = listener.local_addr().expect("an address").port();
    let client = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("a connection");
    let (server, _) = listener.accept().expect("a connection");
    (listener, client, server)
}

/// Moves 1 MB and returns once the last byte is acknowledged and read.
fn transfer(from: &mut TcpStream, to: &mut TcpStream) {
    let (chunk, mut read) = (vec![7; 10_000], vec![0; 10_000]);
    for _ in 0..BYTES / chunk.len() {
        from.write_all(&chunk).expect("written");
        to.read_exact(&mut read).expect("read");
    }
    // The answer also acknowledges the rest.
    to.write_all(&[1]).expect("written");
    from.read_exact(&mut read[..1]).expect("read");
}

fn one(query: &Query) -> Connection {
    let mut all = Vec::new();
    let summary = Diag::open().and_then(|mut diag| diag.dump(query, |one| all.push(*one)));
    let summary = summary.expect("a dump");
    assert_eq!((summary.connections, all.len()), (1, 1), "{all:?}");
    all[0]
}

/// The client's socket, selected by ports in the kernel.
fn client_of(client: &TcpStream) -> Connection {
    let local = client.local_addr().expect("an address");
    let remote = client.peer_addr().expect("an address");
    let connection = one(&Query {
        family: Some(Family::V4),
        states: StateSet::SENDING,
        local_port: Some(local.port()),
        remote_port: Some(remote.port()),
        ..Query::default()
    });
    assert_eq!((connection.local, connection.remote), (local, remote));
    connection
}

fn moved_a_megabyte(cc: &str) -> Option<(Connection, TcpInfo)> {
    let (_listener, mut client, mut server) = connected((Ipv4Addr::LOCALHOST, 0).into());
    if let Err(errno) = set_tcp_congestion(&client, cc) {
        let remedy = match errno.kind() {
            ErrorKind::NotFound => format!("modprobe tcp_{cc}"),
            ErrorKind::PermissionDenied => {
                format!("as root, or with {cc} in net.ipv4.tcp_allowed_congestion_control")
            }
            _ => panic!("{cc}: {errno}"),
        };
        not_run(Capability::Bbr, &format!("{cc}: {errno} ({remedy})"));
        return None;
    }
    transfer(&mut client, &mut server);
    let connection = client_of(&client);
    let info = connection.info.expect("details");
    assert_eq!(connection.cc.map(|name| name.to_string()), Some(cc.to_owned()));
    assert_eq!((connection.state, info.state), (TcpState::Established, TcpState::Established));
    assert_eq!((connection.rqueue, connection.wqueue), (0, 0));
    assert_eq!(connection.uid, rustix::process::getuid().as_raw());
    assert_ne!((connection.inode, connection.cookie), (0, 0));
    // The SYN counts as one byte.
    assert_eq!(info.bytes_acked, Some(BYTES as u64 + 1));
    assert_eq!(info.bytes_received, Some(1));
    let (sent, again) = info.bytes_sent.zip(info.bytes_retrans).expect("since Linux 4.19");
    assert_eq!(sent - again, BYTES as u64);
    assert_eq!((info.unacked, info.notsent_bytes), (0, Some(0)));
    assert!(info.rtt > TimeDelta::ZERO && info.rtt < TimeDelta::from_secs(1), "{}", info.rtt);
    let min_rtt = info.min_rtt.expect("a sample");
    assert!(min_rtt > TimeDelta::ZERO && min_rtt < TimeDelta::from_secs(1), "{min_rtt}");
    assert!(info.data_segs_out >= Some((BYTES / 65_536) as u32));
    assert!(info.delivery_rate > Some(Rate::from_mbit(1)), "{:?}", info.delivery_rate);
    assert!(info.snd_cwnd >= 1 && info.snd_mss > 500);
    let mem = connection.mem.expect("memory");
    assert!(mem.sndbuf > 0 && mem.rcvbuf > 0);
    Some((connection, info))
}

#[test]
fn cubic_moves_a_megabyte() {
    if let Some((connection, _)) = moved_a_megabyte("cubic") {
        assert_eq!(connection.cc_info, None);
    }
}

#[test]
fn bbr_moves_a_megabyte_and_reports_its_model() {
    if let Some((connection, info)) = moved_a_megabyte("bbr") {
        let bbr = connection.bbr().expect("what BBR believes");
        assert!(bbr.bw > Rate::from_mbit(1), "{}", bbr.bw);
        assert!(bbr.min_rtt >= info.min_rtt, "10 s are part of 300 s");
        assert!(bbr.pacing_gain.num() > 0 && bbr.cwnd_gain.num() > 0);
        assert_ne!(info.pacing_rate, Some(Rate::MAX), "BBR paces");
    }
}

/// Written bytes are acknowledged or in the send queue; received bytes are in the receive queue.
#[test]
fn a_reader_that_pauses_fills_both_queues() {
    let (_listener, mut client, _server) = connected((Ipv4Addr::LOCALHOST, 0).into());
    let chunk = vec![0; 65_536];
    client.set_nonblocking(true).expect("not blocking");
    let mut written = 0;
    let stopped = loop {
        match client.write(&chunk) {
            Ok(bytes) => written += bytes as u64,
            Err(error) => break error,
        }
    };
    assert_eq!(stopped.kind(), ErrorKind::WouldBlock);
    let sender = client_of(&client);
    let info = sender.info.expect("details");
    let acked = info.bytes_acked.expect("since Linux 4.1") - 1;
    // The kernel reads the queue length first: bytes acknowledged in between count in both.
    assert!(acked + u64::from(sender.wqueue) >= written);
    assert!(acked <= written && sender.wqueue > 0);
    assert!(info.notsent_bytes > Some(0) && info.notsent_bytes <= Some(sender.wqueue));
    let receiver = one(&Query {
        local_port: Some(sender.remote.port()),
        remote_port: Some(sender.local.port()),
        ..Query::default()
    });
    let received = receiver.info.and_then(|info| info.bytes_received).expect("since Linux 4.1");
    assert_eq!(u64::from(receiver.rqueue), received);
    assert!(received >= acked);
}

/// The FIN counts as a byte on both sides, the SYN only on the connecting side.
#[test]
fn half_closed_states_are_reported() {
    let (_listener, mut client, mut server) = connected((Ipv4Addr::LOCALHOST, 0).into());
    transfer(&mut client, &mut server);
    client.shutdown(Shutdown::Write).expect("shut down");
    assert_eq!(server.read(&mut [0]).expect("read"), 0, "the end");
    // The answer also acknowledges the FIN, if necessary.
    server.write_all(&[2]).expect("written");
    client.read_exact(&mut [0]).expect("read");
    let ports = |local: &TcpStream| Query {
        family: Some(Family::V4),
        states: StateSet::ALL,
        local_port: Some(local.local_addr().expect("an address").port()),
        remote_port: Some(local.peer_addr().expect("an address").port()),
        ..Query::default()
    };
    let (client, server) = (one(&ports(&client)), one(&ports(&server)));
    assert_eq!((client.state, server.state), (TcpState::FinWait2, TcpState::CloseWait));
    let acked = client.info.and_then(|info| info.bytes_acked);
    assert_eq!(acked, Some(BYTES as u64 + 2));
    let received = server.info.and_then(|info| info.bytes_received);
    assert_eq!(received, Some(BYTES as u64 + 1));
}

#[test]
fn the_kernel_filters() {
    let (listener, client, _server) = connected((Ipv4Addr::LOCALHOST, 0).into());
    let port = listener.local_addr().expect("an address").port();
    let mut diag = Diag::open().expect("sock_diag");
    let mut states = |query: Query| {
        let mut seen = Vec::new();
        diag.dump(&query, |one| seen.push(one.state)).expect("a dump");
        seen.sort_unstable();
        seen
    };
    let either = StateSet::NONE.with(TcpState::Established).with(TcpState::Listen);
    let at_port = Query { states: either, local_port: Some(port), ..Query::default() };
    assert_eq!(states(at_port), [TcpState::Established, TcpState::Listen]);
    let listening = StateSet::NONE.with(TcpState::Listen);
    assert_eq!(states(Query { states: listening, ..at_port }), [TcpState::Listen]);
    assert_eq!(states(Query { states: StateSet::SENDING, ..at_port }), [TcpState::Established]);
    assert_eq!(states(Query { family: Some(Family::V6), ..at_port }), []);
    let remote = Query { local_port: None, remote_port: Some(port), ..at_port };
    assert_eq!(states(remote), [TcpState::Established]);
    drop(client);
}

#[test]
fn ipv4_on_a_socket_for_ipv6() {
    if TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0)).is_err() {
        not_run(Capability::Ipv6, "this system has no sockets for IPv6");
        return;
    }
    let (_listener, client, _server) = connected((Ipv6Addr::UNSPECIFIED, 0).into());
    let server = one(&Query {
        local_port: Some(client.peer_addr().expect("an address").port()),
        states: StateSet::SENDING,
        ..Query::default()
    });
    assert_eq!((server.family, server.remote), (Family::V6, client.local_addr().expect("one")));
}

/// More sockets than fit in one datagram (about 70). Each is reported once, and after the first dump
/// nothing is allocated.
#[test]
fn many_sockets_take_many_datagrams_and_no_allocation() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback");
    let address = listener.local_addr().expect("an address");
    let pair = |_| (TcpStream::connect(address).expect("one"), listener.accept().expect("one").0);
    let pairs: Vec<(TcpStream, TcpStream)> = (0..200).map(pair).collect();
    let query =
        Query { states: StateSet::SENDING, local_port: Some(address.port()), ..Query::default() };
    let mut diag = Diag::open().expect("sock_diag");
    let mut ports = Vec::with_capacity(pairs.len());
    diag.dump(&query, |one| ports.push(one.remote.port())).expect("a dump");
    ports.sort_unstable();
    let port = |pair: &(TcpStream, TcpStream)| pair.0.local_addr().expect("an address").port();
    let mut expected: Vec<u16> = pairs.iter().map(port).collect();
    expected.sort_unstable();
    assert_eq!(ports, expected);

    let mut connections = 0;
    let allocated = allocation_counter::measure(|| {
        connections = diag.dump(&query, |_| {}).expect("a dump").connections;
    });
    assert_eq!((connections, allocated.count_total), (200, 0));
}

/// A connection is found by its addresses, and is not found after it is closed.
#[test]
fn a_connection_is_found_by_its_addresses() {
    for address in [SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), (Ipv6Addr::UNSPECIFIED, 0).into()] {
        let (listener, mut client, mut server) = connected(address);
        transfer(&mut client, &mut server);
        let (local, remote) = (client.local_addr().unwrap(), client.peer_addr().unwrap());
        let mut diag = Diag::open().expect("sock_diag");
        let found = diag.find(local, remote).expect("an answer").expect("a connection");
        assert_eq!((found.local, found.remote), (local, remote));
        // The connecting side's SYN counts.
        assert_eq!(found.info.expect("tcp_info").bytes_acked, Some(BYTES as u64 + 1));
        // The accepting end has IPv4-mapped addresses if the listener is IPv6.
        let (local, remote) = (server.local_addr().unwrap(), server.peer_addr().unwrap());
        let found = diag.find(local, remote).expect("an answer").expect("a connection");
        assert_eq!(found.info.expect("tcp_info").bytes_received, Some(BYTES as u64));
        // Closing with unread data resets the connection, which leaves no TIME-WAIT.
        client.write_all(&[1]).expect("written");
        while server.peek(&mut [0]).expect("data") == 0 {}
        drop(server);
        let mut gone = [0];
        let _reset = client.read(&mut gone);
        assert_eq!(diag.find(local, remote), Ok(None));
        drop(listener);
    }
}
