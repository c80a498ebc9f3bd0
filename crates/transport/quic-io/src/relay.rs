//! Relays datagrams to an older process that serves the same port.
//!
//! A new process takes over the UDP sockets of the old one and reads all datagrams. The old one
//! keeps its connections until they end. It still sends through the sockets. The new process passes
//! its datagrams on through a pair of Unix sockets per worker.

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixDatagram;

use bytes::BytesMut;
use noq_proto::{EcnCodepoint, FourTuple};
use rustix::net::sockopt::{set_socket_send_buffer_size, set_socket_send_buffer_size_force};

use crate::driver::Datagram;
use crate::identity::{Identity, destination};

/// An IP address: its family (0 for none) and 16 bytes.
const ADDRESS: usize = 17;
/// Port, scope (IPv6) and ECN mark.
const REST: usize = 2 + 4 + 1;
const HEADER: usize = 2 * ADDRESS + REST;
/// The largest UDP payload.
const MAX_PAYLOAD: usize = 65_535;
/// Most datagrams read before other work.
const READS: usize = 64;
/// Most bytes that may wait for the old process, including the kernel's overhead.
const BUFFER: usize = 4 << 20;

/// An older process that still has connections. This process reads its sockets.
#[derive(Debug)]
pub struct Predecessor {
    /// The generation in its connection IDs.
    pub generation: u8,
    /// Sockets to its workers, in order.
    pub workers: Vec<UnixDatagram>,
    /// The connection IDs that clients chose for handshakes that the process has not completed,
    /// with the worker. A client uses such an ID until it has received an answer.
    pub handshakes: HashMap<Vec<u8>, u8>,
}

impl Predecessor {
    /// Passes the datagram on if it is for that process. Returns whether it was. A datagram that
    /// does not fit into the buffer is lost, as in a full socket buffer. Returns false once the
    /// process has ended: senders then get a stateless reset.
    fn take(&self, identity: &Identity, id: &[u8], datagram: &Datagram) -> bool {
        let worker = match identity.owner_of(id) {
            Some(owner) => (owner.generation == self.generation).then_some(owner.worker),
            None => self.handshakes.get(id).copied(),
        };
        let worker = worker.and_then(|worker| self.workers.get(usize::from(worker)));
        worker.is_some_and(|worker| match worker.send(&encode(datagram)) {
            Ok(_) => true,
            Err(error) => error.kind() == ErrorKind::WouldBlock,
        })
    }
}

/// Passes the datagram on to the older process that owns its connection, if there is one. Returns
/// whether it was passed on.
pub(crate) fn pass_on(
    predecessors: &[Predecessor],
    identity: &Identity,
    datagram: &Datagram,
) -> bool {
    let Some(id) = destination(&datagram.data).filter(|_| !predecessors.is_empty()) else {
        return false;
    };
    predecessors.iter().any(|predecessor| predecessor.take(identity, id, datagram))
}

/// The receiving end of a worker in the old process.
#[derive(Debug)]
pub(crate) struct Inbox {
    socket: UnixDatagram,
    buffer: Vec<u8>,
}

impl Inbox {
    /// Creates an inbox and the socket that fills it.
    pub(crate) fn new() -> io::Result<(Self, UnixDatagram)> {
        let (socket, filler) = UnixDatagram::pair()?;
        socket.set_nonblocking(true)?;
        filler.set_nonblocking(true)?;
        // Exceeding the system's limit requires CAP_NET_ADMIN; fall back to the limit.
        if set_socket_send_buffer_size_force(&filler, BUFFER).is_err() {
            set_socket_send_buffer_size(&filler, BUFFER)?;
        }
        Ok((Self { socket, buffer: vec![0; HEADER + MAX_PAYLOAD] }, filler))
    }

    /// Passes some waiting datagrams to `take`.
    pub(crate) fn receive(&mut self, mut take: impl FnMut(Datagram)) {
        for _ in 0..READS {
            let Ok(length) = self.socket.recv(&mut self.buffer) else { return };
            if let Some(datagram) = decode(&self.buffer[..length]) {
                take(datagram);
            }
        }
    }
}

impl AsFd for Inbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn encode(Datagram { path, ecn, data }: &Datagram) -> Vec<u8> {
    let remote = path.remote();
    let scope = if let SocketAddr::V6(v6) = remote { v6.scope_id() } else { 0 };
    let mut bytes = Vec::with_capacity(HEADER + data.len());
    bytes.extend_from_slice(&encode_ip(Some(remote.ip())));
    bytes.extend_from_slice(&encode_ip(path.local_ip()));
    bytes.extend_from_slice(&remote.port().to_be_bytes());
    bytes.extend_from_slice(&scope.to_be_bytes());
    bytes.push(ecn.map_or(0, |ecn| ecn as u8));
    bytes.extend_from_slice(data);
    bytes
}

fn decode(bytes: &[u8]) -> Option<Datagram> {
    let (remote, bytes) = bytes.split_first_chunk::<ADDRESS>()?;
    let (local, bytes) = bytes.split_first_chunk::<ADDRESS>()?;
    let (port, bytes) = bytes.split_first_chunk()?;
    let (scope, bytes) = bytes.split_first_chunk()?;
    let (ecn, data) = bytes.split_first()?;
    let (port, scope) = (u16::from_be_bytes(*port), u32::from_be_bytes(*scope));
    let remote = match decode_ip(remote)? {
        IpAddr::V4(ip) => SocketAddr::from((ip, port)),
        IpAddr::V6(ip) => SocketAddrV6::new(ip, port, 0, scope).into(),
    };
    let path = FourTuple::new(remote, decode_ip(local));
    Some(Datagram { path, ecn: EcnCodepoint::from_bits(*ecn), data: BytesMut::from(data) })
}

fn encode_ip(ip: Option<IpAddr>) -> [u8; ADDRESS] {
    let (family, octets) = match ip {
        None => (0, [0; 16]),
        Some(IpAddr::V4(ip)) => (4, ip.to_ipv6_mapped().octets()),
        Some(IpAddr::V6(ip)) => (6, ip.octets()),
    };
    let mut bytes = [family; ADDRESS];
    bytes[1..].copy_from_slice(&octets);
    bytes
}

fn decode_ip(bytes: &[u8; ADDRESS]) -> Option<IpAddr> {
    let (family, octets) = bytes.split_first()?;
    let ip = Ipv6Addr::from(<[u8; 16]>::try_from(octets).ok()?);
    match family {
        4 => ip.to_ipv4_mapped().map(IpAddr::V4),
        6 => Some(ip.into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datagram(remote: &str, local_ip: Option<&str>, ecn: Option<EcnCodepoint>) -> Datagram {
        let remote = remote.parse().expect("an address");
        let local_ip = local_ip.map(|ip| ip.parse().expect("an address"));
        let path = FourTuple::new(remote, local_ip);
        Datagram { path, ecn, data: BytesMut::from(&[0x40, 1, 2, 3][..]) }
    }

    #[test]
    fn a_relayed_datagram_is_unchanged() {
        let (mut inbox, filler) = Inbox::new().expect("sockets");
        for sent in [
            datagram("192.0.2.1:443", Some("198.51.100.7"), Some(EcnCodepoint::Ce)),
            datagram("[2001:db8::1]:9", Some("::ffff:192.0.2.1"), Some(EcnCodepoint::Ect0)),
            datagram("[fe80::1%7]:65535", None, None),
        ] {
            filler.send(&encode(&sent)).expect("sent");
            let mut received = Vec::new();
            inbox.receive(|datagram| received.push(datagram));
            let [received] = &received[..] else { panic!("one datagram: {received:?}") };
            assert_eq!((received.path, received.ecn), (sent.path, sent.ecn));
            assert_eq!(received.data, sent.data);
        }
        filler.send(&[4; HEADER - 1]).expect("sent");
        inbox.receive(|datagram| panic!("it is too short: {datagram:?}"));
    }

    #[test]
    fn no_datagrams_are_relayed_to_a_dead_process() {
        let identity = Identity::from_secret(&[3; 32]).expect("a key");
        let (inbox, filler) = Inbox::new().expect("sockets");
        let handshakes = HashMap::from([(vec![9; 8], 0)]);
        let old = [Predecessor { generation: 7, workers: vec![filler], handshakes }];
        let mut initial = datagram("192.0.2.1:443", None, None);
        initial.data =
            BytesMut::from(&[&[0xc0, 0, 0, 0, 1, 8], &[9; 8][..], &[0; 30]].concat()[..]);
        assert!(pass_on(&old, &identity, &initial), "a handshake of the old process");
        assert!(!pass_on(&old, &identity, &datagram("192.0.2.1:443", None, None)));
        drop(inbox);
        assert!(!pass_on(&old, &identity, &initial));
    }
}
