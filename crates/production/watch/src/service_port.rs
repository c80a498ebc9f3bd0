//! Determines the service port of a connection.

use crate::sample::SocketSample;

/// The port of the service that a connection belongs to: that of the side which listened. Where this is unknown, the smaller
/// one: client ports come from a range of high numbers (`net.ipv4.ip_local_port_range`).
pub(crate) fn service_port(socket: &SocketSample) -> u16 {
    let (local, remote) = (socket.local.port(), socket.remote.port());
    match socket.is_accepted {
        Some(true) => local,
        Some(false) => remote,
        None => local.min(remote),
    }
}
