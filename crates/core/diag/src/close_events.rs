//! The kernel's close events of destroyed TCP sockets.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_recv_buffer_size_force};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with};

use crate::connection::Connection;
use crate::error::DiagError;
use crate::replies::Replies;

/// `SKNLGRP_INET_TCP_DESTROY` and `SKNLGRP_INET6_TCP_DESTROY` (`include/uapi/linux/sock_diag.h`), as bits.
const GROUPS: u32 = 1 << 0 | 1 << 2;
/// A close event takes less than 1 kB of the buffer: enough for thousands between two reads.
const RECEIVE_BUFFER: usize = 8 * 1024 * 1024;
const MAX_EVENT: usize = 4096;
const SUBSCRIBING: &str = "subscribing to close events of destroyed TCP sockets";
const READING: &str = "reading close events of destroyed TCP sockets";

/// A subscription to the close events that the kernel sends when it destroys a TCP socket of one network
/// namespace. A close event has the final figures of a connection, however short it was, but no `cc`.
///
/// A socket is destroyed when its connection has ended *and* its program has closed it. A
/// connection that goes into TIME-WAIT leaves its socket first.
#[derive(Debug)]
pub struct CloseEvents {
    socket: OwnedFd,
    buffer: Vec<u8>,
}

impl CloseEvents {
    /// Subscribes in the calling thread's network namespace.
    ///
    /// # Errors
    ///
    /// If the kernel has no sock_diag, or a security policy forbids such sockets. No capability is required
    /// (`NL_CFG_F_NONROOT_RECV` in `net/core/sock_diag.c`).
    pub fn open() -> Result<Self, DiagError> {
        let failed = |errno: Errno| DiagError::from_errno(SUBSCRIBING, errno.raw_os_error());
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::NETLINK, SocketType::DGRAM, flags, Some(SOCK_DIAG));
        let socket = socket.map_err(failed)?;
        // Without CAP_NET_ADMIN the kernel allows no more than net.core.rmem_max.
        set_socket_recv_buffer_size_force(&socket, RECEIVE_BUFFER)
            .or_else(|_| set_socket_recv_buffer_size(&socket, RECEIVE_BUFFER))
            .map_err(failed)?;
        bind(&socket, &SocketAddrNetlink::new(0, GROUPS)).map_err(failed)?;
        Ok(Self { socket, buffer: vec![0; MAX_EVENT] })
    }

    /// Calls `each` for every socket destroyed since the last call. Never waits. Returns whether all close events were
    /// received: false if more came than the buffer holds.
    ///
    /// # Errors
    ///
    /// If the kernel reports an error, or a close event is malformed.
    pub fn read(&mut self, mut each: impl FnMut(&Connection)) -> Result<bool, DiagError> {
        let mut is_complete = true;
        loop {
            let (socket, buffer) = (&self.socket, &mut self.buffer);
            match retry_on_intr(|| recv(socket, &mut buffer[..], RecvFlags::empty())) {
                Ok((_, length)) => {
                    let event = self.buffer.get(..length).ok_or(DiagError::Truncated(length))?;
                    Replies::to(0).read(event, &mut each)?;
                }
                Err(Errno::AGAIN) => return Ok(is_complete),
                Err(Errno::NOBUFS) => is_complete = false,
                Err(errno) => return Err(DiagError::from_errno(READING, errno.raw_os_error())),
            }
        }
    }
}

impl AsFd for CloseEvents {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
