//! QUIC connections with uncork's congestion control on UDP sockets.
//!
//! - [`Driver`] is a QUIC endpoint without clock and sockets: time and datagrams go in, batches of
//!   datagrams and the next deadline come out.
//! - [`Socket`] exchanges batches with the kernel (UDP segmentation and receive offload), with ECN
//!   marks and local addresses.
//! - [`Workers`] are threads, each with a socket and a driver. Sockets of one port (`SO_REUSEPORT`, see
//!   [`bind`]) share its clients. When a client's address changes, the kernel may deliver its datagrams
//!   to the wrong thread; that thread passes them on to the thread that the connection ID names.
//!
//! A process can take over the sockets of another while that one's connections live on
//! ([`Workers::give_way`]): connection IDs also name the process.
//!
//! A server sends no more than three times what an unvalidated address sent (RFC 9000 §8.1), if the stack is
//! this repository's `vendor/noq-proto`. The published release exceeds it by up to a datagram.
//!
//! The application implements [`App`]. Its callbacks run on the worker's thread, one connection at a
//! time.
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

mod app;
mod bind;
mod driver;
mod identity;
mod mailbox;
mod moderation;
mod relay;
mod settings;
mod socket;
mod stats;
mod timers;
mod wait;
mod worker;
mod workers;

pub use app::{App, Arrival, ConnectionContext, ConnectionKey, Load, Verdict};
pub use bind::bind;
pub use driver::{Datagram, Driver, Host, Limits, Progress, Sent, ShutdownOptions, Sink};
pub use identity::{Identity, Random};
pub use mailbox::Mailer;
pub use relay::Predecessor;
pub use settings::{Client, Server};
pub use socket::{Socket, SocketOptions};
pub use stats::{DriverStats, SocketStats, Stats};
pub use worker::Config;
pub use workers::{Workers, WorkersHealth};
