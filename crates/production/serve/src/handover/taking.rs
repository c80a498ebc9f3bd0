//! The new process: takes over the sockets.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

use socket2::{Domain, SockAddr, Socket, Type};
use uncork_quic_io::Predecessor;

use super::channel::{Channel, HandoverMessage, connection_id, unexpected};
use crate::keys::{self, Secret};

/// The version of the messages. Other versions are refused: restart the server with downtime then.
pub(super) const VERSION: u32 = 1;

/// The offer of the running server.
pub(crate) struct Inherited {
    channel: Channel,
    /// The secret for connection IDs. Both processes must be able to decode each other's IDs.
    pub(crate) secret: Secret,
    /// Its generation.
    pub(crate) generation: u8,
    /// The socket for handover requests.
    pub(crate) handover: Option<Socket>,
    admin: Option<(String, OwnedFd)>,
    listeners: Vec<InheritedListener>,
}

/// The sockets of one of its listeners.
#[derive(Debug)]
pub(crate) struct InheritedListener {
    /// Its index in the old process.
    pub(crate) index: usize,
    address: SocketAddr,
    pub(crate) tcp: OwnedFd,
    pub(crate) udp: Vec<OwnedFd>,
}

impl Inherited {
    /// Asks the process that listens at `path` for its sockets. `None` if no process listens.
    pub(crate) fn ask(path: &Path) -> io::Result<Option<Self>> {
        let socket = Socket::new(Domain::UNIX, Type::SEQPACKET, None)?;
        match socket.connect(&SockAddr::unix(path)?) {
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) =>
            {
                return Ok(None);
            }
            connected => connected?,
        }
        let mut channel = Channel::new(socket)?;
        let (secret, generation) = match channel.receive()?.0 {
            HandoverMessage::Offer { version: VERSION, secret, generation } => (secret, generation),
            other => return Err(unexpected(&other)),
        };
        let secret = keys::parse(&secret).ok_or_else(|| io::Error::other("its secret is wrong"))?;
        let (handover, admin, listeners) = (None, None, Vec::new());
        let mut inherited = Self { channel, secret, generation, handover, admin, listeners };
        while inherited.receive()? {}
        Ok(Some(inherited))
    }

    /// Receives a socket. Returns false at the end of the list.
    fn receive(&mut self) -> io::Result<bool> {
        match self.channel.receive()? {
            (HandoverMessage::Handover, Some(fd)) => self.handover = Some(fd.into()),
            (HandoverMessage::Admin { address }, Some(fd)) => self.admin = Some((address, fd)),
            (HandoverMessage::Tcp { address }, Some(tcp)) => {
                let index = self.listeners.len();
                self.listeners.push(InheritedListener { index, address, tcp, udp: Vec::new() });
            }
            (HandoverMessage::Udp, Some(fd)) => match self.listeners.last_mut() {
                Some(listener) => listener.udp.push(fd),
                None => return Err(unexpected(&HandoverMessage::Udp)),
            },
            (HandoverMessage::End, None) => return Ok(false),
            (other, _) => return Err(unexpected(&other)),
        }
        Ok(true)
    }

    /// The sockets of the listener that was configured with this address.
    pub(crate) fn listener(&mut self, address: SocketAddr) -> Option<InheritedListener> {
        let place = self.listeners.iter().position(|listener| listener.address == address)?;
        Some(self.listeners.remove(place))
    }

    /// The admin listener that was configured with this address.
    pub(crate) fn admin(&mut self, address: &str) -> Option<OwnedFd> {
        self.admin.take_if(|(other, _)| other == address).map(|(_, fd)| fd)
    }

    /// Makes the old process stop reading the UDP sockets of these listeners. Returns the sockets
    /// to it and to older processes, by listener index.
    pub(crate) fn ready(&mut self, quic: Vec<usize>) -> io::Result<Predecessors> {
        self.channel.send(&HandoverMessage::Ready { quic }, None)?;
        let mut predecessors = Predecessors::default();
        loop {
            match self.channel.receive()? {
                (HandoverMessage::Relay { listener, generation, worker, handshakes }, Some(fd)) => {
                    let all = predecessors.0.entry(listener).or_default();
                    let predecessor = all.entry(generation).or_insert_with(|| Predecessor {
                        generation,
                        workers: Vec::new(),
                        handshakes: std::collections::HashMap::new(),
                    });
                    predecessor.workers.push(UnixDatagram::from(fd));
                    let ids = handshakes.iter().filter_map(|text| connection_id(text));
                    predecessor.handshakes.extend(ids.map(|id| (id, worker as u8)));
                }
                (HandoverMessage::End, None) => return Ok(predecessors),
                (other, _) => return Err(unexpected(&other)),
            }
        }
    }

    /// Notifies the old process that this one serves. The old one then drains.
    pub(crate) fn serving(self) -> io::Result<()> {
        self.channel.send(&HandoverMessage::Serving, None)
    }
}

/// Older processes, by listener index and generation.
#[derive(Debug, Default)]
pub(crate) struct Predecessors(BTreeMap<usize, BTreeMap<u8, Predecessor>>);

impl Predecessors {
    /// The older processes of a listener.
    pub(crate) fn of(&mut self, listener: usize) -> Vec<Predecessor> {
        self.0.remove(&listener).unwrap_or_default().into_values().collect()
    }
}
