//! Sockets that systemd has opened (sd_listen_fds(3)).

use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::OwnedFd;

use listenfd::ListenFd;

/// The sockets that no listener has taken yet.
#[derive(Debug, Default)]
pub(crate) struct Activated {
    tcp: Vec<(SocketAddr, OwnedFd)>,
    udp: Vec<(SocketAddr, OwnedFd)>,
}

impl Activated {
    /// The sockets that the environment passes to this process.
    pub(crate) fn from_env() -> io::Result<Self> {
        let mut given = ListenFd::from_env();
        let mut activated = Self::default();
        for index in 0..given.len() {
            if let Ok(Some(listener)) = given.take_tcp_listener(index) {
                activated.add_tcp(listener)?;
            } else if let Ok(Some(socket)) = given.take_udp_socket(index) {
                activated.udp.push((socket.local_addr()?, socket.into()));
            } else {
                return Err(io::Error::other(format!(
                    "socket {index} is not one of TCP or UDP: write ListenStream= and ListenDatagram= with IP \
                     addresses"
                )));
            }
        }
        Ok(activated)
    }

    fn add_tcp(&mut self, listener: TcpListener) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        self.tcp.push((listener.local_addr()?, listener.into()));
        Ok(())
    }

    /// The listener at this address.
    pub(crate) fn tcp(&mut self, address: SocketAddr) -> Option<OwnedFd> {
        let place = self.tcp.iter().position(|(other, _)| *other == address)?;
        Some(self.tcp.remove(place).1)
    }

    /// The UDP sockets at this address.
    pub(crate) fn udp(&mut self, address: SocketAddr) -> Vec<UdpSocket> {
        let (these, others) = self.udp.drain(..).partition(|(other, _)| *other == address);
        self.udp = others;
        let these: Vec<(SocketAddr, OwnedFd)> = these;
        these.into_iter().map(|(_, socket)| socket.into()).collect()
    }

    /// A socket that no listener has taken.
    pub(crate) fn left(&self) -> Option<(&'static str, SocketAddr)> {
        let tcp = self.tcp.iter().map(|(address, _)| ("TCP", *address));
        tcp.chain(self.udp.iter().map(|(address, _)| ("UDP", *address))).next()
    }
}
