//! The kernel's state of one connection.

use std::fmt::Debug;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError, Weak};

use uncork_diag::{Diag, DiagError, TcpInfo, TcpState};

/// A sock_diag socket for all threads: an answer takes some microseconds.
#[derive(Debug)]
pub(crate) struct Probe(Mutex<Diag>);

/// The socket of a connection.
pub(crate) trait Socket: Debug + Send + Sync {
    /// What the kernel knows of its connection.
    fn tcp_info(&self) -> Option<TcpInfo>;
}

/// Finds a connection in the kernel, by its socket or by its addresses.
#[derive(Debug)]
pub(crate) struct SocketLookup {
    /// Its socket, weakly: holding it would keep the connection open.
    pub(crate) socket: Weak<dyn Socket>,
    pub(crate) local: SocketAddr,
    pub(crate) peer: SocketAddr,
}

/// The kernel's state of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct KernelState {
    /// Closed if it knows of none.
    pub(super) state: TcpState,
    pub(super) info: Option<TcpInfo>,
}

impl Probe {
    pub(crate) fn open() -> Result<Self, DiagError> {
        Diag::open().map(|diag| Self(Mutex::new(diag)))
    }

    /// What is known of the connection. Its socket tells for less than it costs to be found by its
    /// addresses, which is what is left when the socket is no more but there are bytes to be acknowledged.
    /// A kernel that does not tell is like one that has no such connection.
    pub(super) fn look(&self, ends: &SocketLookup) -> KernelState {
        if let Some(socket) = ends.socket.upgrade() {
            let info = socket.tcp_info();
            return KernelState { state: info.map_or(TcpState::Close, |info| info.state), info };
        }
        let mut diag = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = diag.find(ends.local, ends.peer).ok().flatten();
        let state = found.map_or(TcpState::Close, |connection| connection.state);
        KernelState { state, info: found.and_then(|connection| connection.info) }
    }
}
