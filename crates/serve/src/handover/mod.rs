//! A restart without loss: a new process takes over the sockets of the one that serves, which goes on until its
//! connections have ended.
//!
//! The process that serves listens on a Unix socket. The new one connects to it:
//!
//! 1. The old process offers its sockets ([`giving`]). The new one prepares everything ([`taking`]).
//! 2. The new one is ready. The old one stops reading the UDP sockets and tells how to pass on what is for it.
//! 3. The new one serves, and says so. The old one accepts no more and drains.
//!
//! If the new process fails before the last step, the old one goes on as before. TCP connections that wait in the
//! kernel's queue, and datagrams in the sockets' buffers, are found by whichever process comes next.

mod channel;
mod giving;
mod start;
mod taking;

pub(crate) use giving::Offer;
pub(crate) use start::{generation, offer, ready, serving};
pub(crate) use taking::{Inherited, InheritedListener};
