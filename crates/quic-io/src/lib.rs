//! QUIC connections with uncork's congestion control on UDP sockets.
//!
//! - [`Driver`] is one end of many connections without clock and sockets: time and datagrams go in,
//!   batches of datagrams and the time of the next deadline come out.
//! - [`Socket`] gives batches to the kernel and takes them from it (UDP segmentation and receive
//!   offload), with the marks of ECN and the addresses that datagrams were sent to.
//! - [`Workers`] are threads of a socket and a driver each. Sockets of one port (`SO_REUSEPORT`, see
//!   [`bind`]) share its clients; a datagram that the kernel gives to the wrong thread, because a client
//!   has moved, is handed over to the right one, which its connection ID names.
//!
//! What connections are for is an [`App`]: it is called on the worker's thread, with the connection at
//! hand.
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

mod app;
mod bind;
mod driver;
mod identity;
mod mailbox;
mod moderation;
mod settings;
mod socket;
mod stats;
mod timers;
mod wait;
mod worker;
mod workers;

pub use app::{App, Arrival, ConnectionKey, Load, Turn, Verdict};
pub use bind::bind;
pub use driver::{Datagram, Driver, Host, Limits, Progress, Sent, ShutdownOptions, Sink};
pub use identity::{Identity, Random};
pub use mailbox::Mailer;
pub use settings::{Client, Server};
pub use socket::{Socket, SocketOptions};
pub use stats::{DriverStats, SocketStats, Stats};
pub use worker::Config;
pub use workers::{Workers, WorkersHealth};
