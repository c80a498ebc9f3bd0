//! Asking the kernel.

use std::net::SocketAddr;

use rustix::fd::OwnedFd;
use rustix::io::{Errno, retry_on_intr};
use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, connect, recv, send, socket_with,
};

use crate::connection::Connection;
use crate::error::DiagError;
use crate::query::{self, Family, Query};
use crate::replies::{Replies, Summary};

/// The kernel makes the datagrams of a dump as large as the reader has room for, up to this many
/// bytes (`max_recvmsg_len` in `net/netlink/af_netlink.c`).
const DATAGRAM: usize = 32 * 1024;

const OPENING: &str = "opening a netlink socket for sock_diag";
const ASKING: &str = "asking for TCP sockets through sock_diag";
const READING: &str = "reading from sock_diag";

/// A socket to ask the kernel for the TCP sockets of one network namespace.
#[derive(Debug)]
pub struct Diag {
    socket: OwnedFd,
    buffer: Vec<u8>,
    sequence: u32,
    /// A dump began whose end was not read.
    unfinished: bool,
}

impl Diag {
    /// Opens a socket in the network namespace that the calling thread is in. It stays with that
    /// namespace, whichever one the thread enters later.
    ///
    /// # Errors
    ///
    /// A kernel without sock_diag, or a security policy that forbids such sockets.
    pub fn open() -> Result<Self, DiagError> {
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, Some(SOCK_DIAG))
            .map_err(|errno| match errno {
            Errno::PROTONOSUPPORT | Errno::AFNOSUPPORT => DiagError::Unsupported,
            errno => failed(OPENING, errno),
        })?;
        // A connected socket takes messages from the kernel only, not from other processes.
        connect(&socket, &SocketAddrNetlink::new(0, 0)).map_err(|errno| failed(OPENING, errno))?;
        Ok(Self { socket, buffer: vec![0; DATAGRAM], sequence: 0, unfinished: false })
    }

    /// Tells `each` of every socket that the query asks for.
    ///
    /// For each family the kernel looks through its whole table, which all namespaces share: that
    /// takes longer than to tell of a few sockets. Who asks often names the family, and lets a
    /// namespace of its own have a small table (`net.ipv4.tcp_child_ehash_entries`, Linux 6.1).
    ///
    /// # Errors
    ///
    /// A kernel without inet_diag for TCP, or one that refuses; a reply that is not understood.
    /// `each` may have seen some sockets by then. Another dump may be asked for after any error.
    pub fn dump(
        &mut self,
        query: &Query,
        mut each: impl FnMut(&Connection),
    ) -> Result<Summary, DiagError> {
        let mut total = Summary::default();
        for family in query.families() {
            let part = self.dump_family(query, family, &mut each)?;
            total.connections += part.connections;
            total.interrupted |= part.interrupted;
        }
        Ok(total)
    }

    /// Tells of the one connection with these addresses, as this process sees them; `None` if there is
    /// none any more. It costs the kernel no more when there are many.
    ///
    /// # Errors
    ///
    /// A kernel that refuses; a reply that is not understood.
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
            // ENOENT, which from a kernel that has dumps means that it has no such socket.
            Err(DiagError::Unsupported) => return Ok(None),
            Err(error) => return Err(error),
        }
        // A listener answers for what it has accepted, once that is gone.
        Ok(found.filter(|connection: &Connection| connection.remote == remote))
    }

    fn dump_family(
        &mut self,
        query: &Query,
        family: Family,
        mut each: impl FnMut(&Connection),
    ) -> Result<Summary, DiagError> {
        self.drain()?;
        self.sequence = self.sequence.wrapping_add(1);
        let request = query.request(family, self.sequence);
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

    /// Reads away what an unfinished dump left. The kernel makes the next part while one is read,
    /// so there is nothing to wait for: no part means that it has come to its end.
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

    /// The length of the next datagram, which lies in the buffer as far as there was room.
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

    /// A buffer that is too small loses a datagram; the next dump has room and is not disturbed by
    /// what the lost one left.
    #[test]
    fn a_truncated_datagram_is_told_and_leaves_nothing_behind() {
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

    /// Left off by a panic, for instance: the kernel refuses a second dump beside the first.
    #[test]
    fn a_dump_left_off_does_not_disturb_the_next() {
        let mut diag = Diag::open().expect("sock_diag");
        let request = Query::default().request(Family::V4, 1000);
        send(&diag.socket, &request, SendFlags::empty()).expect("a request");
        diag.unfinished = true;
        let summary = diag.dump(&Query::default(), |_| {});
        assert!(summary.is_ok(), "{summary:?}");
        assert!(!diag.unfinished);
    }
}
