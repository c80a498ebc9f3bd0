//! The sock_diag socket.

use std::net::SocketAddr;

use rustix::fd::OwnedFd;
use rustix::io::{Errno, retry_on_intr};
use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, connect, recv, send, socket_with,
};

use crate::connection::Connection;
use crate::error::DiagError;
use crate::query::{self, Query};
use crate::replies::{Replies, Summary};

/// The kernel fills the reader's buffer with each datagram of a dump, up to this many bytes
/// (`max_recvmsg_len` in `net/netlink/af_netlink.c`).
const DATAGRAM: usize = 32 * 1024;

const OPENING: &str = "opening a netlink socket for sock_diag";
const ASKING: &str = "asking for TCP sockets through sock_diag";
const READING: &str = "reading from sock_diag";

/// A sock_diag socket: queries the TCP sockets of one network namespace.
#[derive(Debug)]
pub struct Diag {
    socket: OwnedFd,
    buffer: Vec<u8>,
    sequence: u32,
    /// Whether a dump was started but not read to its end.
    unfinished: bool,
}

impl Diag {
    /// Opens a socket in the calling thread's network namespace. It stays in that namespace even if the
    /// thread moves to another.
    ///
    /// # Errors
    ///
    /// If the kernel has no sock_diag, or a security policy forbids such sockets.
    pub fn open() -> Result<Self, DiagError> {
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, Some(SOCK_DIAG))
            .map_err(|errno| match errno {
            Errno::PROTONOSUPPORT | Errno::AFNOSUPPORT => DiagError::Unsupported,
            errno => failed(OPENING, errno),
        })?;
        // A connected socket receives from the kernel only, not from other processes.
        connect(&socket, &SocketAddrNetlink::new(0, 0)).map_err(|errno| failed(OPENING, errno))?;
        Ok(Self { socket, buffer: vec![0; DATAGRAM], sequence: 0, unfinished: false })
    }

    /// Calls `each` for every socket that matches the query.
    ///
    /// The kernel scans its whole table, which all namespaces share; that takes longer than reporting a few
    /// sockets. For frequent dumps, use a namespace with a small table of its own
    /// (`net.ipv4.tcp_child_ehash_entries`, Linux 6.1).
    ///
    /// # Errors
    ///
    /// If the kernel has no inet_diag for TCP or reports an error, or a reply is malformed. `each` may have
    /// been called for some sockets. After any error, another dump may be started.
    pub fn dump(
        &mut self,
        query: &Query,
        mut each: impl FnMut(&Connection),
    ) -> Result<Summary, DiagError> {
        match self.dump_once(query, &mut each) {
            // Refused before the first socket.
            Err(DiagError::Forbidden(_)) if query.has_storage => {
                self.dump_once(&Query { has_storage: false, ..*query }, &mut each)
            }
            done => done,
        }
    }

    fn dump_once(
        &mut self,
        query: &Query,
        mut each: impl FnMut(&Connection),
    ) -> Result<Summary, DiagError> {
        self.drain()?;
        self.sequence = self.sequence.wrapping_add(1);
        let request = query.request(self.sequence);
        retry_on_intr(|| send(&self.socket, &request, SendFlags::empty()))
            .map_err(|errno| failed(ASKING, errno))?;
        self.unfinished = true;
        let mut replies = Replies::to(self.sequence);
        while self.unfinished {
            let length =
                self.receive(RecvFlags::empty()).map_err(|errno| failed(READING, errno))?;
            let Some(datagram) = self.buffer.get(..length) else {
                self.buffer.resize(length, 0);
                return Err(DiagError::Truncated(length));
            };
            self.unfinished = !replies.read(datagram, &mut each)?;
        }
        Ok(replies.summary())
    }

    /// Returns the connection with these addresses, as this process sees them, or `None` if it does not
    /// exist. The cost does not depend on the number of connections.
    ///
    /// # Errors
    ///
    /// If the kernel reports an error, or the reply is malformed.
    pub fn find(
        &mut self,
        local: SocketAddr,
        remote: SocketAddr,
    ) -> Result<Option<Connection>, DiagError> {
        let [local, remote] = [local, remote]
            .map(|address| SocketAddr::new(address.ip().to_canonical(), address.port()));
        self.drain()?;
        self.sequence = self.sequence.wrapping_add(1);
        let request = query::one(local, remote, self.sequence);
        retry_on_intr(|| send(&self.socket, &request, SendFlags::empty()))
            .map_err(|errno| failed(ASKING, errno))?;
        let length = self.receive(RecvFlags::empty()).map_err(|errno| failed(READING, errno))?;
        let datagram = self.buffer.get(..length).ok_or(DiagError::Truncated(length))?;
        let mut found = None;
        match Replies::to(self.sequence).read(datagram, |connection| found = Some(*connection)) {
            Ok(_) => {}
            // ENOENT: no such socket, given that the kernel supports sock_diag.
            Err(DiagError::Unsupported) => return Ok(None),
            Err(error) => return Err(error),
        }
        // For a closed connection, the kernel returns the listener that accepted it.
        Ok(found.filter(|connection: &Connection| connection.remote == remote))
    }

    /// Discards the rest of an unfinished dump. The kernel prepares the next part while one is read, so
    /// this never waits: if no part is available, the dump has ended.
    fn drain(&mut self) -> Result<(), DiagError> {
        while self.unfinished {
            match self.receive(RecvFlags::DONTWAIT) {
                Ok(_) => {}
                Err(Errno::AGAIN) => self.unfinished = false,
                Err(errno) => return Err(failed(READING, errno)),
            }
        }
        Ok(())
    }

    /// Receives a datagram into the buffer, truncated to its size. Returns the full length.
    fn receive(&mut self, flags: RecvFlags) -> Result<usize, Errno> {
        let flags = flags | RecvFlags::TRUNC;
        let (socket, buffer) = (&self.socket, &mut self.buffer);
        retry_on_intr(|| recv(socket, &mut buffer[..], flags)).map(|(_, length)| length)
    }
}

fn failed(doing: &'static str, errno: Errno) -> DiagError {
    DiagError::from_errno(doing, errno.raw_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::Family;

    /// If the buffer is too small, a datagram is lost; the next dump has a larger buffer and ignores the
    /// rest of the failed one.
    #[test]
    fn a_truncated_datagram_is_reported_and_leaves_nothing_behind() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback");
        let port = listener.local_addr().expect("an address").port();
        let query = Query { family: Some(Family::V4), local_port: Some(port), ..Query::default() };
        let mut diag = Diag::open().expect("sock_diag");
        diag.buffer = vec![0; 100];
        let error = diag.dump(&query, |_| {}).expect_err("truncated");
        let DiagError::Truncated(length) = error else { panic!("{error}") };
        assert!(length > 100);
        let mut seen = Vec::new();
        let summary = diag.dump(&query, |connection| seen.push(connection.local.port()));
        assert_eq!(summary, Ok(Summary { connections: 1, interrupted: false }));
        assert_eq!(seen, [port]);
    }

    /// A dump may be left unfinished, for instance by a panic. The kernel rejects a second dump in
    /// parallel.
    #[test]
    fn an_unfinished_dump_does_not_disturb_the_next() {
        let mut diag = Diag::open().expect("sock_diag");
        let request = Query::default().request(1000);
        send(&diag.socket, &request, SendFlags::empty()).expect("a request");
        diag.unfinished = true;
        let summary = diag.dump(&Query::default(), |_| {});
        assert!(summary.is_ok(), "{summary:?}");
        assert!(!diag.unfinished);
    }
}
