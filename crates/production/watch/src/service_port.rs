//! Determines the service port of a connection.

use crate::sample::SocketSample;

/// The port of the service that a connection belongs to: the smaller of its two ports. Client ports
/// come from a range of high numbers (`net.ipv4.ip_local_port_range`).
pub(crate) fn service_port(socket: &SocketSample) -> u16 {
    socket.local.port().min(socket.remote.port())
}
