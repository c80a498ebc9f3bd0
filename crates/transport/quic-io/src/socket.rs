//! A UDP socket that sends and receives batches.

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

/// Largest batch that the kernel delivers with receive offload (GRO): an IP packet.
const MAX_BATCH_BYTES: usize = 65_535;
/// Batches read per system call.
const BATCHES: usize = 8;

/// Buffer sizes of a socket in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketOptions {
    /// Receive buffer in bytes, including the kernel's overhead.
    pub receive_buffer: usize,
    /// Send buffer in bytes.
    pub send_buffer: usize,
}

impl Default for SocketOptions {
    fn default() -> Self {
        Self { receive_buffer: 4 << 20, send_buffer: 2 << 20 }
    }
}

/// A UDP socket with its receive buffer.
#[derive(Debug)]
pub struct Socket {
    udp: UdpSocket,
    state: UdpSocketState,
    buffer: Vec<u8>,
    stats: SocketStats,
}

impl Socket {
    /// Wraps a bound socket and makes it non-blocking.
    ///
    /// # Errors
    ///
    /// If a socket option that QUIC needs cannot be set.
    pub fn new(socket: UdpSocket, options: SocketOptions) -> io::Result<Self> {
        let SocketOptions { receive_buffer, send_buffer } = options;
        // Exceeding the system's limit requires CAP_NET_ADMIN; fall back to the limit.
        if set_socket_recv_buffer_size_force(&socket, receive_buffer).is_err() {
            set_socket_recv_buffer_size(&socket, receive_buffer)?;
        }
        if set_socket_send_buffer_size_force(&socket, send_buffer).is_err() {
            set_socket_send_buffer_size(&socket, send_buffer)?;
        }
        let state = UdpSocketState::new((&socket).into())?;
        let buffer = vec![0; BATCHES * MAX_BATCH_BYTES];
        Ok(Self { udp: socket, state, buffer, stats: SocketStats::default() })
    }

    /// The counters.
    pub fn stats(&self) -> SocketStats {
        self.stats
    }

    /// The local address.
    ///
    /// # Errors
    ///
    /// The system's error.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.udp.local_addr()
    }

    /// Whether the network may fragment large packets.
    pub fn may_fragment(&self) -> bool {
        self.state.may_fragment()
    }

    /// Most datagrams that the kernel accepts in one batch (GSO).
    pub fn datagrams_per_batch(&self) -> std::num::NonZeroUsize {
        self.state.max_gso_segments()
    }

    /// Replaces the socket; keeps the counters.
    pub(crate) fn replace(&mut self, other: Self) {
        let stats = self.stats;
        *self = Self { stats, ..other };
    }

    /// Passes the datagrams of one system call to `take`. Returns whether more may be waiting.
    pub fn receive(&mut self, mut take: impl FnMut(Datagram)) -> bool {
        let mut buffers = self.buffer.chunks_exact_mut(MAX_BATCH_BYTES);
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

    /// Sends datagrams one by one, for devices without GSO.
    fn send_unsegmented(&mut self, transmit: &Transmit, contents: &[u8], size: usize) -> Sent {
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
            return self.send_unsegmented(transmit, contents, size);
        }
        match self.try_send(transmit, contents, segment_size) {
            Ok(()) => Sent::All,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.stats.blocked += 1;
                Sent::Until(0)
            }
            Err(_) => match segment_size {
                // A device without GSO reports it by this error.
                Some(size) if self.datagrams_per_batch().get() == 1 => {
                    self.send_unsegmented(transmit, contents, size)
                }
                // The connection detects a lost packet. Most are probes for a larger MTU.
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
