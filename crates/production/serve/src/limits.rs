//! What one client may take.

use std::time::Duration;

use crate::telemetry::Timeouts;

/// Bounds on what clients can make the server hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections of a listener over TCP, and as many over QUIC. Over TCP there are never more than the process has
    /// descriptors for; further ones wait in the kernel's queue.
    pub connections: usize,
    /// From accepting a connection to the end of its first request's head, TLS included.
    pub head_time: Duration,
    /// Between requests.
    pub idle_time: Duration,
    /// While a client takes nothing of a response.
    pub stall_time: Duration,
    /// A request's head, in bytes.
    pub head_bytes: u32,
    /// Requests at a time on a connection of HTTP/2 or HTTP/3.
    pub streams: u32,
    /// What all connections together may hold, in bytes.
    pub memory: u64,
    /// What the clients of one network may have of connections and memory, in percent.
    pub network_share: u8,
    /// Connections of the clients of one network to a listener over TCP, and as many over QUIC.
    pub network_connections: Option<usize>,
    /// Requests per second of the clients of one network, and as many at once.
    pub network_requests: Option<u32>,
    /// Bytes of bodies per second to the clients of one network, and as many at once.
    pub network_rate: Option<u64>,
    /// How many bits of an address of IPv4 and of IPv6 name a network. A household has an address of IPv4, or
    /// shares one; of IPv6 it usually has a /56, so that a /64 would make 256 of it.
    pub network_bits: (u8, u8),
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 10_000,
            head_time: Duration::from_secs(10),
            idle_time: Duration::from_mins(1),
            stall_time: Duration::from_secs(30),
            head_bytes: 16 * 1024,
            streams: 100,
            memory: 1 << 30,
            network_share: 25,
            network_connections: None,
            network_requests: None,
            network_rate: None,
            network_bits: (32, 56),
        }
    }
}

impl Limits {
    /// What one network may have of `all`.
    pub(crate) fn share_of(&self, all: u64) -> u64 {
        (u128::from(all) * u128::from(self.network_share) / 100).max(1) as u64
    }

    /// What one network may have of `all` connections.
    pub(crate) fn connections_of(&self, all: usize) -> u64 {
        let share = self.share_of(all as u64);
        self.network_connections.map_or(share, |most| share.min(most as u64))
    }

    pub(crate) fn timeouts(&self) -> Timeouts {
        Timeouts { head: self.head_time, idle: self.idle_time, stall: self.stall_time }
    }
}
