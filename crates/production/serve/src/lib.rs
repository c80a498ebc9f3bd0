//! A file server with a congestion control per connection.
//!
//! The parts: [`site`] turns a request head into a response, for every transport; `choice` picks
//! the controller of a connection, by listener or by policy; `tcp` serves HTTP/1.1 and HTTP/2 over
//! kernel TCP, `quic` serves HTTP/3 over uncork's QUIC; `telemetry` records responses and
//! connections; `admin` is the admin endpoint; [`config`] has the tables of the configuration file. Policy, databases
//! and certificate are reloaded when their files change: `live` has what a reload replaces.
#![cfg(target_os = "linux")]

mod access_log;
mod activation;
mod admin;
mod admission;
mod choice;
mod clock;
pub mod config;
mod crypto;
mod descriptors;
mod error;
mod guarded;
mod handover;
mod identity;
mod keys;
mod limits;
mod live;
mod network_limiter;
mod piece;
mod quic;
mod request_head;
mod server;
mod server_timing;
mod shared;
pub mod site;
mod sources;
mod spec;
mod tcp;
mod telemetry;
mod tickets;
mod timing;
mod unix_socket;
mod user;

pub use admin::{AdminAddress, AdminSpec};
pub use error::ServeError;
pub use identity::{CertificateFiles, Identity};
pub use limits::Limits;
pub use server::Server;
pub use server_timing::ServerTiming;
pub use sources::{Reloaded, WatchedFiles};
pub use spec::{HostSpec, ServerSpec};
pub use tcp::{ListenerSpec, Listening};
pub use uncork_records::{RecordsError, RecordsSpec, RecordsSummary};
