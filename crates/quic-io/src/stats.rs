//! Counters.

/// What a socket did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SocketStats {
    /// Batches that the kernel took, one system call each.
    pub batches_sent: u64,
    /// Datagrams in them.
    pub datagrams_sent: u64,
    /// Bytes in them, without the headers of UDP and IP.
    pub bytes_sent: u64,
    /// How often the kernel could take no more for the moment (`EAGAIN`).
    pub blocked: u64,
    /// Batches that the kernel refused for good: no route, or larger than the device allows.
    pub refused: u64,
    /// System calls that gave datagrams.
    pub receive_calls: u64,
    /// Datagrams received.
    pub datagrams_received: u64,
    /// Bytes in them.
    pub bytes_received: u64,
    /// System calls that gave an error.
    pub receive_errors: u64,
}

/// What a driver did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DriverStats {
    /// Connections that are there, those included that are over and wait for late packets.
    pub connections: u64,
    /// Connections accepted.
    pub accepted: u64,
    /// Connections begun from here.
    pub begun: u64,
    /// Clients that were refused.
    pub declined: u64,
    /// Clients that have to show their address first.
    pub retried: u64,
    /// Clients that got no answer.
    pub ignored: u64,
    /// Clients whose first packet was no good.
    pub failed: u64,
    /// Answers of the endpoint itself that were dropped because too many waited.
    pub replies_dropped: u64,
}

/// What a worker did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Its socket.
    pub socket: SocketStats,
    /// Its connections.
    pub driver: DriverStats,
    /// How often it looked for work.
    pub wakes: u64,
    /// Datagrams for connections of another worker, which were handed over.
    pub handed_over: u64,
    /// Of these, those that were dropped because too many waited there.
    pub handed_over_dropped: u64,
    /// Datagrams that came from other workers.
    pub taken_over: u64,
}
