//! Sockets of one port.

use std::io;
use std::net::{SocketAddr, UdpSocket};

use socket2::{Domain, Protocol, Type};

/// So many sockets that share `address`: the kernel gives all datagrams of a client to the same one,
/// as long as the client's address stays. With port 0 they share whichever is free. One of `[::]`
/// receives from clients of IPv4, too.
///
/// # Errors
///
/// What the system says.
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
