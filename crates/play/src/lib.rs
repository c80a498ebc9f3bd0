//! HTTP clients with sockets and clocks: downloads that are measured, and the players of
//! `uncork-apps` as listeners of real servers.
//!
//! Whoever listens does what a simulated listener does: the player decides what to ask for and when,
//! and is told when bytes arrive. Here it asks a server, and the wall clock says when.
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

mod audio;
mod clock;
mod cmcd;
mod connect;
mod connection;
mod error;
mod eyeballs;
mod fetch;
mod get;
mod line;
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
