//! HTTP/3 (RFC 9114) over uncork's QUIC connections.
//!
//! The `h3` crate implements HTTP/3 over a transport trait. This crate implements that transport:
//! [`Session`] connects the events of a connection (`uncork_quic_io::App`) with the tasks of `h3` and
//! its users, all on the thread of the connection's worker. [`Client`] is a complete client, usable on
//! any thread.
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

pub mod client;
mod connection_waker;
mod core;
mod error;
pub mod fields;
mod flush;
mod payload;
mod priority;
mod qpack;
mod reply;
mod resolve;
mod session;
mod stream;
mod transport;
mod update;

pub use client::Client;
pub use payload::Payload;
pub use priority::Priority;
pub use reply::{COPIED, Reply, Unsendable};
pub use session::{Session, SessionBounds, SessionScope};
pub use transport::{BidiStream, RecvStream, SendStream, Transport};
