//! Requests (`struct inet_diag_req_v2` and `inet_diag_req`, `include/uapi/linux/inet_diag.h`).

use std::net::{IpAddr, SocketAddr};
use std::ops::Deref;

use crate::netlink::HEADER;
use crate::state::StateSet;

/// A filter for TCP sockets. The kernel applies it, so excluded sockets cost little.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Query {
    /// Sockets of one family only; `None` means both.
    pub family: Option<Family>,
    /// Only sockets in one of these states.
    pub states: StateSet,
    /// Only sockets with this local port.
    pub local_port: Option<u16>,
    /// Only sockets with this remote port.
    pub remote_port: Option<u16>,
    /// With the state of the controllers that `uncork kernel` loads, which BPF keeps for each socket: about 4 kB are
    /// copied per socket. Without `CAP_BPF` the dump goes on without.
    pub has_storage: bool,
}

/// A socket's address family. An IPv6 socket may carry an IPv4 connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// `SOCK_DIAG_BY_FAMILY` (`include/uapi/linux/sock_diag.h`): the type of requests and of sockets in replies.
pub(crate) const BY_FAMILY: u16 = 20;
/// `TCPDIAG_GETSOCK` (`include/uapi/linux/inet_diag.h`), the request of Linux before 3.3, and the type of sockets in
/// the replies to it. It alone covers both families (`inet_diag_dump_compat` in `net/ipv4/inet_diag.c`): the kernel
/// scans its table once instead of twice.
pub(crate) const BOTH_FAMILIES: u16 = 18;
/// Length of a request: header and `struct inet_diag_req_v2`.
const REQUEST: usize = HEADER + 56;
/// Header and `struct inet_diag_req`.
const REQUEST_FOR_BOTH: usize = HEADER + 60;
/// The attribute `INET_DIAG_REQ_SK_BPF_STORAGES` without content: all that BPF keeps for a socket.
const STORAGES: usize = 4;
const REQ_SK_BPF_STORAGES: u16 = 2;

/// `NLM_F_REQUEST | NLM_F_DUMP`.
const FLAGS: u16 = 0x001 | 0x300;
/// `NLM_F_REQUEST`.
const ONE: u16 = 0x001;
/// `INET_DIAG_NOCOOKIE`, twice: any socket with these addresses.
const NO_COOKIE: [u8; 8] = [0xff; 8];
const IPPROTO_TCP: u8 = 6;
/// `INET_DIAG_INFO`, `INET_DIAG_VEGASINFO`, `INET_DIAG_CONG` and `INET_DIAG_SKMEMINFO`; bit n - 1 requests
/// number n. `INET_DIAG_BBRINFO` and `INET_DIAG_DCTCPINFO` have no bit: Vegas's requests the state of any
/// congestion control.
const EXTENSIONS: u8 = 1 << 1 | 1 << 2 | 1 << 3 | 1 << 6;

/// A netlink message, stored without allocation.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    bytes: [u8; REQUEST_FOR_BOTH + STORAGES],
    length: usize,
}

impl Deref for Request {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl Default for Query {
    /// All TCP sockets.
    fn default() -> Self {
        Self {
            family: None,
            states: StateSet::ALL,
            local_port: None,
            remote_port: None,
            has_storage: false,
        }
    }
}

impl Family {
    /// `AF_INET` or `AF_INET6` of Linux.
    pub(crate) const fn number(self) -> u8 {
        match self {
            Self::V4 => 2,
            Self::V6 => 10,
        }
    }
}

impl Query {
    /// The netlink message that requests a dump. Its replies carry the same `sequence`, see
    /// [`Replies::to`](crate::Replies::to).
    pub fn request(&self, sequence: u32) -> Request {
        let (kind, states) = match self.family {
            Some(_) => (BY_FAMILY, 4),
            None => (BOTH_FAMILIES, 52),
        };
        let end = if self.family.is_some() { REQUEST } else { REQUEST_FOR_BOTH };
        let length = if self.has_storage { end + STORAGES } else { end };
        let mut request = Request { bytes: [0; REQUEST_FOR_BOTH + STORAGES], length };
        let bytes = &mut request.bytes;
        let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
        put(0, &(length as u32).to_ne_bytes());
        put(4, &kind.to_ne_bytes());
        put(6, &FLAGS.to_ne_bytes());
        put(8, &sequence.to_ne_bytes());
        match self.family {
            Some(family) => put(HEADER, &[family.number(), IPPROTO_TCP, EXTENSIONS]),
            None => put(HEADER + 3, &[EXTENSIONS]),
        }
        put(HEADER + states, &self.states.mask().to_ne_bytes());
        // struct inet_diag_sockid; a dump filters only by its ports, 0 being any.
        let ports = HEADER + if self.family.is_some() { 8 } else { 4 };
        put(ports, &self.local_port.unwrap_or(0).to_be_bytes());
        put(ports + 2, &self.remote_port.unwrap_or(0).to_be_bytes());
        if self.has_storage {
            put(end, &(STORAGES as u16).to_ne_bytes());
            put(end + 2, &REQ_SK_BPF_STORAGES.to_ne_bytes());
        }
        request
    }
}

/// The netlink message that requests the one socket with these addresses. The kernel finds it by hash,
/// without a table scan.
pub(crate) fn one(local: SocketAddr, remote: SocketAddr, sequence: u32) -> Request {
    let family = if local.is_ipv4() { Family::V4 } else { Family::V6 };
    let mut request = Query { family: Some(family), ..Query::default() }.request(sequence);
    let bytes = &mut request.bytes;
    let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
    put(6, &ONE.to_ne_bytes());
    for (address, port, at) in [(local, 8, 12), (remote, 10, 28)] {
        put(HEADER + port, &address.port().to_be_bytes());
        match address.ip() {
            IpAddr::V4(ip) => put(HEADER + at, &ip.octets()),
            IpAddr::V6(ip) => put(HEADER + at, &ip.octets()),
        }
    }
    put(HEADER + 48, &NO_COOKIE);
    request
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::Messages;
    use crate::state::TcpState;

    #[test]
    fn a_request_is_one_message_of_72_bytes() {
        let query = Query {
            states: StateSet::NONE.with(TcpState::Established),
            local_port: Some(443),
            remote_port: Some(0x1234),
            family: Some(Family::V6),
            has_storage: false,
        };
        let bytes = query.request(9);
        let messages: Vec<_> = Messages(&bytes).collect::<Result<_, _>>().expect("a message");
        assert_eq!(messages.len(), 1);
        let message = messages[0];
        assert_eq!((message.kind, message.flags, message.sequence), (20, 0x301, 9));
        let mut expected = vec![10, 6, 0b0100_1110, 0];
        expected.extend(2_u32.to_ne_bytes());
        expected.extend([0x01, 0xbb, 0x12, 0x34]);
        expected.resize(56, 0);
        assert_eq!(message.payload, expected);
    }

    #[test]
    fn both_families_take_one_request() {
        let states = StateSet::NONE.with(TcpState::Established);
        let query = Query { states, local_port: Some(443), ..Query::default() };
        let bytes = query.request(9);
        let messages: Vec<_> = Messages(&bytes).collect::<Result<_, _>>().expect("a message");
        assert_eq!((messages.len(), messages[0].kind, messages[0].flags), (1, 18, 0x301));
        let mut expected = vec![0, 0, 0, 0b0100_1110, 0x01, 0xbb];
        expected.resize(52, 0);
        expected.extend(2_u32.to_ne_bytes());
        expected.resize(60, 0);
        assert_eq!(messages[0].payload, expected);
        let bytes = Query { has_storage: true, ..query }.request(9);
        let messages: Vec<_> = Messages(&bytes).collect::<Result<_, _>>().expect("a message");
        expected.extend([4_u16, 2].map(u16::to_ne_bytes).concat());
        assert_eq!(messages[0].payload, expected);
    }
}
