//! Restarts without downtime: a new process takes over the sockets of the running server, which
//! exits after its connections have ended.
//!
//! The running server listens on a Unix socket. The new process connects to it:
//!
//! 1. The old process offers its sockets ([`giving`]). The new one prepares everything ([`taking`]).
//! 2. The new one is ready. The old one stops reading the UDP sockets, and sends the sockets through
//!    which its own datagrams are passed on.
//! 3. The new one serves, and notifies the old one. The old one stops accepting and drains.
//!
//! If the new process fails before the last step, the old one continues to serve. TCP connections
//! in the kernel's accept queue and datagrams in the socket buffers are not lost: the process that
//! reads next receives them.

mod channel;
mod giving;
mod start;
mod taking;

pub(crate) use giving::Offer;
pub(crate) use start::{generation, offer, ready, serving};
pub(crate) use taking::{Inherited, InheritedListener, Predecessors};
