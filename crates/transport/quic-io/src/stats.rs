//! Counters.

/// Counters of a socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SocketStats {
    /// Batches sent, one system call each.
    pub batches_sent: u64,
    /// Datagrams sent.
    pub datagrams_sent: u64,
    /// Bytes sent, without UDP and IP headers.
    pub bytes_sent: u64,
    /// Sends that failed because the socket buffer was full (`EAGAIN`).
    pub blocked: u64,
    /// Batches that the kernel rejected: no route, or larger than the device allows.
    pub refused: u64,
    /// System calls that returned datagrams.
    pub receive_calls: u64,
    /// Datagrams received.
    pub datagrams_received: u64,
    /// Bytes received.
    pub bytes_received: u64,
    /// System calls that failed.
    pub receive_errors: u64,
}

/// Counters of a driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DriverStats {
    /// Current connections, including closed ones that still drain.
    pub connections: u64,
    /// Connections accepted.
    pub accepted: u64,
    /// Connections opened as a client.
    pub begun: u64,
    /// Connection requests refused.
    pub declined: u64,
    /// Connection requests answered with Retry.
    pub retried: u64,
    /// Connection requests dropped without an answer.
    pub ignored: u64,
    /// Connection requests with an invalid first packet.
    pub failed: u64,
    /// Replies of the endpoint dropped because their queue was full.
    pub replies_dropped: u64,
}

/// Counters of a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Its socket.
    pub socket: SocketStats,
    /// Its connections.
    pub driver: DriverStats,
    /// Iterations of the worker's loop.
    pub wakes: u64,
    /// Datagrams passed on to another worker.
    pub handed_over: u64,
    /// Of these, datagrams dropped because that worker's queue was full.
    pub handed_over_dropped: u64,
    /// Datagrams passed on to an older process.
    pub passed_on: u64,
    /// Datagrams received from other workers.
    pub taken_over: u64,
}
