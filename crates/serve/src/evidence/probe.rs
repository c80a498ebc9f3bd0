//! Asking the kernel for one connection.

use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};

use uncork_diag::{Connection, Diag, DiagError};

/// A socket to ask with, for all threads: an answer takes some microseconds.
#[derive(Debug)]
pub(crate) struct Probe(Mutex<Diag>);

impl Probe {
    pub(crate) fn open() -> Result<Self, DiagError> {
        Diag::open().map(|diag| Self(Mutex::new(diag)))
    }

    /// The connection between these addresses, if there is one. A kernel that does not tell is like
    /// one that has none.
    pub(super) fn look(&self, local: SocketAddr, peer: SocketAddr) -> Option<Connection> {
        let mut diag = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        diag.find(local, peer).ok().flatten()
    }
}
