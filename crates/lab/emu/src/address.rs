//! IP addresses of the hosts.
//!
//! The addresses are from the ranges for benchmarks, which the Internet does not route:
//! 198.18.0.0/15 (RFC 2544 appendix C.2.2) and 2001:2::/48 (RFC 5180 §8). They are the same in
//! every emulation, because emulations are isolated from each other.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The addresses of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// The IPv4 address.
    pub v4: Ipv4Addr,
    /// The IPv6 address, if the kernel supports IPv6.
    pub v6: Option<Ipv6Addr>,
}

/// All addresses of an emulation, with prefix lengths.
pub(crate) const NETWORKS: [(IpAddr, u8); 2] = [
    (IpAddr::V4(Ipv4Addr::new(198, 18, 0, 0)), 15),
    (IpAddr::V6(Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 0)), 48),
];

/// Maximum hosts on the client side.
pub(crate) const MAX_HOSTS: usize = 1000;

impl Addresses {
    /// The host on the server side.
    pub const SERVER: Self = Self {
        v4: Ipv4Addr::new(198, 18, 0, 1),
        v6: Some(Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 1)),
    };

    /// The client host with index `host`.
    pub const fn client(host: u32) -> Self {
        let [_, _, high, low] = (host + 1).to_be_bytes();
        Self {
            v4: Ipv4Addr::new(198, 19, high, low),
            v6: Some(Ipv6Addr::new(0x2001, 2, 0, 1, 0, 0, high as u16, low as u16)),
        }
    }

    /// Whether `address` is one of them.
    pub(crate) fn have(self, address: IpAddr) -> bool {
        match address {
            IpAddr::V4(address) => self.v4 == address,
            IpAddr::V6(address) => self.v6 == Some(address),
        }
    }
}

/// The index of the client host with this address, if any.
pub(crate) fn client_host(address: IpAddr) -> Option<u32> {
    let number = match address {
        IpAddr::V4(address) => {
            let [_, _, high, low] = address.octets();
            u32::from_be_bytes([0, 0, high, low])
        }
        IpAddr::V6(address) => {
            let [.., high, low] = address.segments();
            u32::from(high) << 8 | u32::from(low)
        }
    };
    let host = number.checked_sub(1)?;
    (host < MAX_HOSTS as u32 && Addresses::client(host).have(address)).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_found_by_their_addresses() {
        for host in [0, 1, 254, 255, 256, MAX_HOSTS as u32 - 1] {
            let addresses = Addresses::client(host);
            assert_eq!(client_host(addresses.v4.into()), Some(host));
            assert_eq!(client_host(addresses.v6.expect("always").into()), Some(host));
        }
        for other in
            ["198.19.0.0", "198.19.255.1", "198.18.0.1", "10.0.0.1", "2001:2::1", "ff02::1"]
        {
            assert_eq!(client_host(other.parse().expect("an address")), None, "{other}");
        }
    }
}
