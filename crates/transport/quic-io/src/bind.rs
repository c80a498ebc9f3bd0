//! Sockets that share a port.

use std::io;
use std::net::{SocketAddr, UdpSocket};

use socket2::{Domain, Protocol, Type};

/// Binds `count` sockets to `address` (`SO_REUSEPORT`). The kernel delivers all datagrams of a client
/// address to the same socket. With port 0 they share one free port. Sockets on `[::]` also receive
/// IPv4.
///
/// # Errors
///
/// The system's error.
pub fn bind(address: SocketAddr, count: usize) -> io::Result<Vec<UdpSocket>> {
    let mut sockets: Vec<UdpSocket> = Vec::with_capacity(count);
    let mut address = address;
    for _ in 0..count {
        let socket =
            socket2::Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        if count > 1 {
            socket.set_reuse_port(true)?;
        }
        if address.is_ipv6() {
            socket.set_only_v6(!address.ip().is_unspecified())?;
        }
        socket.bind(&address.into())?;
        let socket = UdpSocket::from(socket);
        address = socket.local_addr()?;
        sockets.push(socket);
    }
    Ok(sockets)
}
