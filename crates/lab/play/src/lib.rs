//! HTTP clients with sockets and clocks: measured downloads, and `uncork-apps`'s players against real
//! servers.
//!
//! A listener runs the same player as in the simulator: it decides what to request and when, and receives an event
//! when bytes arrive. Here it sends requests to a real server, by the wall clock.
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

mod audio;
mod clock;
mod cmcd;
mod connect;
mod connection;
mod document;
mod error;
mod eyeballs;
mod fetch;
mod get;
mod persistent;
mod quic;
mod range;
mod record;
mod sink;
mod stop;
mod target;
mod tls;

pub use audio::{ListenSpec, ListenerReport, listen};
pub use cmcd::CmcdMode;
pub use connect::{ConnectSpec, Setup};
pub use connection::Version;
pub use error::ClientError;
pub use fetch::Fetched;
pub use get::{Connections, GetSpec, Tally, get};
pub use range::ByteRange;
pub use target::Target;
pub use tls::Trust;
