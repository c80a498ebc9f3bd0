//! A TCP socket, as reported by the kernel.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::attributes::Attributes;
use crate::cc_info::{BbrInfo, CcInfo, DctcpInfo, VegasInfo};
use crate::error::Malformed;
use crate::fields::Fields;
use crate::mem_info::MemInfo;
use crate::name::CcName;
use crate::query::Family;
use crate::state::TcpState;
use crate::storage;
use crate::tcp_info::TcpInfo;

/// A TCP socket (`struct inet_diag_msg` with its attributes, `include/uapi/linux/inet_diag.h`).
///
/// For sockets in TIME-WAIT and for connection requests that wait for the final ACK, the kernel reports
/// only addresses and state: every `Option` here is `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection {
    /// The socket's address family.
    pub family: Family,
    /// Local address and port. IPv4-mapped addresses become IPv4.
    pub local: SocketAddr,
    /// Remote address and port, all zero if unconnected.
    pub remote: SocketAddr,
    /// Index of the interface that the socket is bound to, or 0.
    pub interface: u32,
    /// The connection's state.
    pub state: TcpState,
    /// A number unique to the socket within its namespace until the next boot.
    pub cookie: u64,
    /// The user who created the socket.
    pub uid: u32,
    /// The number in `socket:[...]` under `/proc/PID/fd`; 0 if no process holds the socket any more.
    pub inode: u32,
    /// Bytes received and not yet read; for a listening socket, connections not yet accepted.
    pub rqueue: u32,
    /// Bytes written and not yet acknowledged; for a listening socket, its backlog limit.
    pub wqueue: u32,
    /// The congestion control's name.
    pub cc: Option<CcName>,
    /// TCP's state.
    pub info: Option<TcpInfo>,
    /// The congestion control's state.
    pub cc_info: Option<CcInfo>,
    /// The socket's memory.
    pub mem: Option<MemInfo>,
    /// The number of the socket's cgroup of version 2 (Linux 5.9).
    pub cgroup: Option<u64>,
    /// Which copy of a controller of `uncork kernel` the connection runs: the number of the map that has its state, if a
    /// [`Query`](crate::Query) asked for it.
    pub copy: Option<u32>,
}

/// `sizeof(struct inet_diag_msg)`.
const STRUCTURE: usize = 72;

const INFO: u16 = 2;
const VEGASINFO: u16 = 3;
const CONG: u16 = 4;
const SKMEMINFO: u16 = 7;
const DCTCPINFO: u16 = 9;
const BBRINFO: u16 = 16;
const SK_BPF_STORAGES: u16 = 20;
const CGROUP_ID: u16 = 21;

impl Connection {
    /// Parses the payload of a `SOCK_DIAG_BY_FAMILY` message.
    pub(crate) fn parse(payload: &[u8]) -> Result<Self, Malformed> {
        let malformed = Malformed { part: "a socket's message", length: payload.len() };
        let mut connection = Self::parse_structure(Fields(payload)).ok_or(malformed)?;
        for attribute in Attributes(payload.get(STRUCTURE..).unwrap_or_default()) {
            let (kind, value) = attribute?;
            connection.take(kind, value);
        }
        Ok(connection)
    }

    fn parse_structure(raw: Fields<'_>) -> Option<Self> {
        let family = match raw.u8(0)? {
            number if number == Family::V4.number() => Family::V4,
            number if number == Family::V6.number() => Family::V6,
            _ => return None,
        };
        let connection = Self {
            family,
            state: TcpState::from_number(raw.u8(1)?),
            local: SocketAddr::new(address(family, raw.bytes(8)?), raw.be16(4)?),
            remote: SocketAddr::new(address(family, raw.bytes(24)?), raw.be16(6)?),
            interface: raw.u32(40)?,
            cookie: raw.halves(44)?,
            rqueue: raw.u32(56)?,
            wqueue: raw.u32(60)?,
            uid: raw.u32(64)?,
            inode: raw.u32(68)?,
            cc: None,
            info: None,
            cc_info: None,
            mem: None,
            cgroup: None,
            copy: None,
        };
        Some(connection)
    }

    fn take(&mut self, kind: u16, value: &[u8]) {
        match kind {
            INFO => self.info = TcpInfo::parse(value),
            CONG => self.cc = Some(CcName::from_bytes(value)),
            SKMEMINFO => self.mem = MemInfo::parse(value),
            VEGASINFO => self.cc_info = VegasInfo::parse(value).map(CcInfo::Vegas),
            DCTCPINFO => self.cc_info = DctcpInfo::parse(value).map(CcInfo::Dctcp),
            CGROUP_ID => self.cgroup = value.first_chunk().map(|id| u64::from_ne_bytes(*id)),
            BBRINFO => self.cc_info = BbrInfo::parse(value).map(CcInfo::Bbr),
            SK_BPF_STORAGES => {
                let found = storage::find(value);
                self.cc_info = found.and_then(|it| it.bbr).map(CcInfo::Bbr).or(self.cc_info);
                self.copy = found.and_then(|it| it.map);
            }
            _ => {}
        }
    }

    /// BBR's model of the path, if the connection uses BBR.
    pub fn bbr(&self) -> Option<&BbrInfo> {
        match &self.cc_info {
            Some(CcInfo::Bbr(info)) => Some(info),
            _ => None,
        }
    }
}

fn address(family: Family, bytes: [u8; 16]) -> IpAddr {
    match family {
        Family::V4 => Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3]).into(),
        Family::V6 => IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn structure(family: u8, address: [u8; 16]) -> Vec<u8> {
        let mut bytes = vec![family, 1, 0, 0, 0x01, 0xbb, 0x12, 0x34];
        bytes.extend(address);
        bytes.extend(address);
        for word in [3_u32, 5, 1, 0, 20, 30, 1000, 77] {
            bytes.extend(word.to_ne_bytes());
        }
        bytes
    }

    fn v4(octets: [u8; 4]) -> [u8; 16] {
        std::array::from_fn(|n| octets.get(n).copied().unwrap_or(0))
    }

    #[test]
    fn reads_the_structure() {
        let payload = structure(2, v4([10, 0, 0, 1]));
        assert_eq!(payload.len(), STRUCTURE);
        let connection = Connection::parse(&payload).expect("a socket");
        assert_eq!(connection.local.to_string(), "10.0.0.1:443");
        assert_eq!(connection.remote.to_string(), "10.0.0.1:4660");
        assert_eq!(connection.state, TcpState::Established);
        assert_eq!((connection.interface, connection.cookie), (3, (1 << 32) + 5));
        assert_eq!((connection.rqueue, connection.wqueue), (20, 30));
        assert_eq!((connection.uid, connection.inode), (1000, 77));
        assert_eq!((connection.info, connection.bbr()), (None, None));
    }

    #[test]
    fn mapped_addresses_are_ipv4() {
        let mapped = "::ffff:10.0.0.1".parse::<Ipv6Addr>().expect("an address").octets();
        let connection = Connection::parse(&structure(10, mapped)).expect("a socket");
        assert_eq!(connection.family, Family::V6);
        assert_eq!(connection.local.to_string(), "10.0.0.1:443");
        let real = "fd00::1".parse::<Ipv6Addr>().expect("an address").octets();
        let connection = Connection::parse(&structure(10, real)).expect("a socket");
        assert_eq!(connection.local.to_string(), "[fd00::1]:443");
    }

    #[test]
    fn malformed_sockets_are_rejected() {
        let refused = |bytes: &[u8]| Connection::parse(bytes).expect_err("refused");
        assert_eq!(refused(&structure(1, [0; 16])).part, "a socket's message");
        assert_eq!(refused(&structure(2, [0; 16])[..71]).length, 71);
        let mut torn = structure(2, [0; 16]);
        torn.extend([200, 200, 4, 0]);
        assert_eq!(refused(&torn).part, "an attribute");
    }

    /// Every kernel sends at least the first 104 bytes of `struct tcp_info`; less is invalid.
    #[test]
    fn short_attributes_are_absent_and_unknown_ones_skipped() {
        let mut payload = structure(2, v4([10, 0, 0, 1]));
        for (kind, length) in [(INFO, 100_u16), (BBRINFO, 16), (999, 4)] {
            payload.extend((length + 4).to_ne_bytes());
            payload.extend(kind.to_ne_bytes());
            payload.extend(vec![1; usize::from(length)]);
        }
        payload.extend(9_u16.to_ne_bytes());
        payload.extend(CONG.to_ne_bytes());
        payload.extend(b"reno\0");
        let connection = Connection::parse(&payload).expect("a socket");
        assert_eq!((connection.info, connection.cc_info), (None, None));
        assert_eq!(connection.cc.map(|cc| cc.to_string()), Some("reno".to_owned()));
    }
}
