//! The old process: hands over its sockets.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use socket2::Socket;
use uncork_quic_io::Predecessor;

use super::channel::{Channel, HandoverMessage, handshakes_of, unexpected};
use super::taking::VERSION;
use crate::keys::{self, Secret};
use crate::quic;
use crate::unix_socket::SocketFile;

/// The sockets that a running server offers to a process that takes over.
#[derive(Debug)]
pub(crate) struct Offer {
    /// The socket for handover requests.
    pub(crate) socket: Socket,
    pub(crate) file: SocketFile,
    pub(crate) secret: Secret,
    pub(crate) generation: u8,
    /// The admin endpoint: its configured address, its listener, and the file of a Unix socket.
    pub(crate) admin: Option<(String, OwnedFd, Option<Arc<SocketFile>>)>,
    pub(crate) listeners: Vec<OfferedListener>,
}

/// The sockets of one listener.
#[derive(Debug)]
pub(crate) struct OfferedListener {
    /// The configured address.
    pub(crate) address: SocketAddr,
    pub(crate) tcp: OwnedFd,
    pub(crate) udp: Vec<OwnedFd>,
}

impl Offer {
    /// Hands the sockets over if a process asks for them. `quic` has the QUIC listeners, in order.
    /// After an error, this process continues to serve.
    pub(crate) fn answer(&self, quic: &[quic::Listener]) -> Option<io::Result<()>> {
        let asked = match self.socket.accept() {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
            asked => asked,
        };
        Some(asked.and_then(|(socket, _)| self.give(Channel::new(socket)?, quic)))
    }

    fn give(&self, mut channel: Channel, quic: &[quic::Listener]) -> io::Result<()> {
        self.offer(&channel)?;
        let taken = match channel.receive()?.0 {
            HandoverMessage::Ready { quic } => quic,
            other => return Err(unexpected(&other)),
        };
        let given: Vec<_> =
            taken.iter().filter_map(|&index| Some((index, quic.get(index)?))).collect();
        let served = give_way(&mut channel, &given);
        if served.is_err() {
            for (_, listener) in &given {
                listener.resume();
            }
            return served;
        }
        self.files().for_each(SocketFile::disown);
        Ok(())
    }

    /// The files of Unix sockets.
    pub(super) fn files(&self) -> impl Iterator<Item = &SocketFile> {
        let admin = self.admin.iter().filter_map(|(_, _, file)| file.as_deref());
        admin.chain([&self.file])
    }

    fn offer(&self, channel: &Channel) -> io::Result<()> {
        let (secret, generation) = (keys::text(&self.secret), self.generation);
        channel.send(&HandoverMessage::Offer { version: VERSION, secret, generation }, None)?;
        channel.send(&HandoverMessage::Handover, Some(self.socket.as_fd()))?;
        if let Some((address, fd, _)) = &self.admin {
            channel.send(&HandoverMessage::Admin { address: address.clone() }, Some(fd.as_fd()))?;
        }
        for OfferedListener { address, tcp, udp } in &self.listeners {
            channel.send(&HandoverMessage::Tcp { address: *address }, Some(tcp.as_fd()))?;
            for socket in udp {
                channel.send(&HandoverMessage::Udp, Some(socket.as_fd()))?;
            }
        }
        channel.send(&HandoverMessage::End, None)
    }
}

/// Stops reading datagrams, and waits until the other process reads them.
fn give_way(channel: &mut Channel, given: &[(usize, &quic::Listener)]) -> io::Result<()> {
    for (index, listener) in given {
        let own = listener.give_way()?;
        for predecessor in listener.predecessors().iter().chain([&own]) {
            relay(channel, *index, predecessor)?;
        }
    }
    channel.send(&HandoverMessage::End, None)?;
    match channel.receive()?.0 {
        HandoverMessage::Serving => Ok(()),
        other => Err(unexpected(&other)),
    }
}

fn relay(channel: &Channel, listener: usize, predecessor: &Predecessor) -> io::Result<()> {
    let Predecessor { generation, workers, handshakes } = predecessor;
    for (worker, socket) in workers.iter().enumerate() {
        let handshakes = handshakes_of(worker, handshakes);
        let message =
            HandoverMessage::Relay { listener, generation: *generation, worker, handshakes };
        channel.send(&message, Some(socket.as_fd()))?;
    }
    Ok(())
}
