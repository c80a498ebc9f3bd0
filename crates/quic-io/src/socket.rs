//! A UDP socket, with batches in both directions.

use std::io::{self, ErrorKind, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use bytes::BytesMut;
use noq_proto::{EcnCodepoint, FourTuple, Transmit};
use noq_udp::{RecvMeta, UdpSocketState};
use rustix::net::sockopt::{
    set_socket_recv_buffer_size, set_socket_recv_buffer_size_force, set_socket_send_buffer_size,
    set_socket_send_buffer_size_force,
};

use crate::driver::{Datagram, Sent, Sink};
use crate::stats::SocketStats;

/// What the kernel gives at once with receive offload: no more than fits into an IP packet.
const MOST_BYTES: usize = 65_535;
/// Batches taken by one system call.
const BATCHES: usize = 8;

/// How much the kernel keeps for a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketOptions {
    /// Bytes that may wait to be read, the kernel's own included.
    pub receive_buffer: usize,
    /// Bytes that may wait to be sent.
    pub send_buffer: usize,
}

impl Default for SocketOptions {
    fn default() -> Self {
        Self { receive_buffer: 4 << 20, send_buffer: 2 << 20 }
    }
}

/// A socket, and room for what arrives.
#[derive(Debug)]
pub struct Socket {
    udp: UdpSocket,
    state: UdpSocketState,
    room: Vec<u8>,
    stats: SocketStats,
}

impl Socket {
    /// Takes over a socket that is bound. It does not block from now on.
    ///
    /// # Errors
    ///
    /// If the socket is none that QUIC can use.
    pub fn new(socket: UdpSocket, options: SocketOptions) -> io::Result<Self> {
        let SocketOptions { receive_buffer, send_buffer } = options;
        // Above the system's limit only with CAP_NET_ADMIN; up to it otherwise.
        if set_socket_recv_buffer_size_force(&socket, receive_buffer).is_err() {
            set_socket_recv_buffer_size(&socket, receive_buffer)?;
        }
        if set_socket_send_buffer_size_force(&socket, send_buffer).is_err() {
            set_socket_send_buffer_size(&socket, send_buffer)?;
        }
        let state = UdpSocketState::new((&socket).into())?;
        let room = vec![0; BATCHES * MOST_BYTES];
        Ok(Self { udp: socket, state, room, stats: SocketStats::default() })
    }

    /// What it did.
    pub fn stats(&self) -> SocketStats {
        self.stats
    }

    /// Its address.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.udp.local_addr()
    }

    /// Whether packets that are too large might be cut into pieces on their way.
    pub fn may_fragment(&self) -> bool {
        self.state.may_fragment()
    }

    /// Datagrams that the kernel takes in one batch.
    pub fn datagrams_per_batch(&self) -> std::num::NonZeroUsize {
        self.state.max_gso_segments()
    }

    /// Goes on with another socket; the counters stay.
    pub(crate) fn replace(&mut self, other: Self) {
        let stats = self.stats;
        *self = Self { stats, ..other };
    }

    /// Gives what one system call has to `take`; whether there may be more.
    pub fn receive(&mut self, mut take: impl FnMut(Datagram)) -> bool {
        let mut buffers = self.room.chunks_exact_mut(MOST_BYTES);
        let mut buffers: [IoSliceMut<'_>; BATCHES] =
            std::array::from_fn(|_| IoSliceMut::new(buffers.next().unwrap_or_default()));
        let mut metas = [RecvMeta::default(); BATCHES];
        let received = self.state.recv((&self.udp).into(), &mut buffers, &mut metas);
        let count = match received {
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
            Err(_) => {
                self.stats.receive_errors += 1;
                return false;
            }
        };
        self.stats.receive_calls += 1;
        for (buffer, meta) in buffers.iter().zip(&metas[..count]) {
            self.stats.bytes_received += meta.len as u64;
            let path = FourTuple::new(meta.addr, meta.dst_ip);
            let ecn = meta.ecn.and_then(|ecn| EcnCodepoint::from_bits(ecn as u8));
            let mut data = BytesMut::from(&buffer[..meta.len]);
            while !data.is_empty() {
                let length = meta.stride.clamp(1, data.len());
                self.stats.datagrams_received += 1;
                take(Datagram { path, ecn, data: data.split_to(length) });
            }
        }
        count == BATCHES
    }

    fn try_send(
        &mut self,
        transmit: &Transmit,
        contents: &[u8],
        segment_size: Option<usize>,
    ) -> io::Result<()> {
        let batch = noq_udp::Transmit {
            destination: transmit.destination,
            ecn: transmit.ecn.and_then(|ecn| noq_udp::EcnCodepoint::from_bits(ecn as u8)),
            contents,
            segment_size,
            src_ip: transmit.src_ip,
        };
        self.state.try_send((&self.udp).into(), &batch)?;
        self.stats.batches_sent += 1;
        self.stats.bytes_sent += contents.len() as u64;
        self.stats.datagrams_sent +=
            contents.len().div_ceil(segment_size.unwrap_or(contents.len()).max(1)) as u64;
        Ok(())
    }

    /// Sends one datagram after the other: this device does not segment.
    fn send_one_by_one(&mut self, transmit: &Transmit, contents: &[u8], size: usize) -> Sent {
        for (index, datagram) in contents.chunks(size.max(1)).enumerate() {
            match self.try_send(transmit, datagram, None) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.stats.blocked += 1;
                    return Sent::Until(index * size);
                }
                Err(_) => self.stats.refused += 1,
            }
        }
        Sent::All
    }
}

impl Sink for Socket {
    fn send(&mut self, transmit: &Transmit, contents: &[u8]) -> Sent {
        let segments = |size: &usize| *size < contents.len();
        let segment_size = transmit.segment_size.filter(segments);
        if let Some(size) = segment_size
            && self.datagrams_per_batch().get() == 1
        {
            return self.send_one_by_one(transmit, contents, size);
        }
        match self.try_send(transmit, contents, segment_size) {
            Ok(()) => Sent::All,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.stats.blocked += 1;
                Sent::Until(0)
            }
            Err(_) => match segment_size {
                // It is by such an error that a device shows that it does not segment.
                Some(size) if self.datagrams_per_batch().get() == 1 => {
                    self.send_one_by_one(transmit, contents, size)
                }
                // To the connection it is lost. Most are probes for a larger MTU.
                _ => {
                    self.stats.refused += 1;
                    Sent::All
                }
            },
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.udp.as_fd()
    }
}
