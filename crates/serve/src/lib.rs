//! A file server with a congestion control per connection.
//!
//! The parts: [`site`] turns a request head into a response, for every transport; `choice` picks
//! the controller of a connection, by listener or by policy; `tcp` serves HTTP/1.1 and HTTP/2 over
//! kernel TCP, `quic` serves HTTP/3 over uncork's QUIC; `telemetry` records responses and
//! connections; `admin` is the admin endpoint. Policy, databases and certificate are reloaded when
//! their files change.
#![cfg(target_os = "linux")]

mod admin;
mod admission;
mod choice;
mod clock;
mod descriptors;
mod error;
mod guarded;
mod handover;
mod identity;
mod keys;
mod limits;
mod piece;
mod quic;
mod server;
mod shared;
pub mod site;
mod sources;
mod spec;
mod tcp;
mod telemetry;
mod tickets;
mod timing;
mod unix_socket;

pub use admin::{AdminAddress, AdminSpec};
pub use error::ServeError;
pub use identity::Identity;
pub use limits::Limits;
pub use server::Server;
pub use sources::Reloaded;
pub use spec::ServerSpec;
pub use tcp::{ListenerSpec, Listening};
pub use uncork_records::{RecordsError, RecordsSpec, RecordsSummary};
