//! What one client may take.

use std::time::Duration;

use crate::telemetry::Timeouts;

/// Bounds on what clients can make the server hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections of a listener; more of them wait in the kernel's queue.
    pub connections: usize,
    /// From accepting a connection to the end of its first request's head, TLS included.
    pub head_time: Duration,
    /// Between requests.
    pub idle_time: Duration,
    /// While a client takes nothing of a response.
    pub stall_time: Duration,
    /// A request's head, in bytes.
    pub head_bytes: u32,
    /// Requests at a time on a connection of HTTP/2.
    pub streams: u32,
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
        }
    }
}

impl Limits {
    pub(crate) fn timeouts(&self) -> Timeouts {
        Timeouts { head: self.head_time, idle: self.idle_time, stall: self.stall_time }
    }
}
