//! The kernel's state of one connection.

use std::fmt::Debug;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError, Weak};

use uncork_diag::{Diag, DiagError, TcpInfo, TcpState};

/// A sock_diag socket shared by all threads: a query takes some microseconds.
#[derive(Debug)]
pub(crate) struct Probe(Mutex<Diag>);

/// The socket of a connection.
pub(crate) trait Socket: Debug + Send + Sync {
    /// The kernel's state of the connection.
    fn tcp_info(&self) -> Option<TcpInfo>;
}

/// Identifies a connection in the kernel, by its socket or by its addresses.
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
    /// Closed if the kernel does not know the connection.
    pub(super) state: TcpState,
    pub(super) info: Option<TcpInfo>,
}

impl Probe {
    pub(crate) fn open() -> Result<Self, DiagError> {
        Diag::open().map(|diag| Self(Mutex::new(diag)))
    }

    /// Queries the kernel's state of a connection. Asking the socket is cheaper than a lookup by
    /// addresses, which is needed when the socket is closed but bytes are unacknowledged. An error
    /// counts as a closed connection.
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
