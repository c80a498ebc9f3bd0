//! The messages between two processes of a handover, some with a file descriptor.

use std::collections::HashMap;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use data_encoding::HEXLOWER_PERMISSIVE;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize};
use socket2::Socket;

use crate::keys;

/// How long the other process may take for a step. Reading a policy or a database takes some time.
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum message size: one ID for each handshake of a worker, a few hundred in all.
const LARGEST: usize = 128 * 1024;
/// Maximum number of handshakes per worker in a message. Clients of other handshakes have to start
/// over.
const HANDSHAKES: usize = 1000;

/// A message. "With a descriptor": a file descriptor is attached.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum HandoverMessage {
    /// The old process can be taken over. `secret` is its secret for connection IDs, in hexadecimal
    /// digits.
    Offer { version: u32, secret: String, generation: u8 },
    /// The socket for handover requests; with a descriptor.
    Handover,
    /// The admin listener that was configured with this address; with a descriptor.
    Admin { address: String },
    /// The TCP listener that was configured with this address; with a descriptor.
    Tcp { address: SocketAddr },
    /// A UDP socket of the preceding listener; with a descriptor.
    Udp,
    /// The end of the list.
    End,
    /// The new process is ready and takes the UDP sockets of these listeners.
    Ready { quic: Vec<usize> },
    /// The socket through which datagrams are passed on to a worker of this listener and
    /// generation; with a descriptor.
    Relay { listener: usize, generation: u8, worker: usize, handshakes: Vec<String> },
    /// The new process serves clients.
    Serving,
}

/// The connection to the other process.
pub(super) struct Channel {
    socket: Socket,
    buffer: Vec<u8>,
}

impl Channel {
    pub(super) fn new(socket: Socket) -> io::Result<Self> {
        socket.set_nonblocking(false)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { socket, buffer: vec![0; LARGEST] })
    }

    pub(super) fn send(
        &self,
        message: &HandoverMessage,
        fd: Option<BorrowedFd<'_>>,
    ) -> io::Result<()> {
        let text = serde_json::to_vec(message)?;
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if let Some(fd) = &fd {
            control.push(SendAncillaryMessage::ScmRights(std::slice::from_ref(fd)));
        }
        sendmsg(&self.socket, &[IoSlice::new(&text)], &mut control, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// Receives the next message and its descriptor.
    pub(super) fn receive(&mut self) -> io::Result<(HandoverMessage, Option<OwnedFd>)> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut into = [IoSliceMut::new(&mut self.buffer)];
        let received = recvmsg(&self.socket, &mut into, &mut control, RecvFlags::CMSG_CLOEXEC)?;
        if received.bytes == 0 {
            return Err(io::Error::other("the other process has ended"));
        }
        let mut fds = control.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(fds) => Some(fds),
            _ => None,
        });
        let fd = fds.next().and_then(|mut fds| fds.next());
        Ok((serde_json::from_slice(&self.buffer[..received.bytes])?, fd))
    }
}

/// The error for a message that violates the protocol.
pub(super) fn unexpected(message: &HandoverMessage) -> io::Error {
    io::Error::other(format!("the other process is of another version: it says {message:?}"))
}

/// The connection IDs of a worker's handshakes, as text.
pub(super) fn handshakes_of(worker: usize, all: &HashMap<Vec<u8>, u8>) -> Vec<String> {
    let own = all.iter().filter(|(_, owner)| usize::from(**owner) == worker);
    own.take(HANDSHAKES).map(|(id, _)| keys::text(id)).collect()
}

/// The reverse of [`handshakes_of`] for one ID.
pub(super) fn connection_id(text: &str) -> Option<Vec<u8>> {
    HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok()
}
