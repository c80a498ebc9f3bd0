//! Which end of a connection is the service.

use super::sample::SocketSample;

/// The service that a connection belongs to: the smaller of its two ports. Clients take theirs from a range of high
/// numbers (`net.ipv4.ip_local_port_range`).
pub(super) fn service_port(socket: &SocketSample) -> u16 {
    socket.local.port().min(socket.remote.port())
}
