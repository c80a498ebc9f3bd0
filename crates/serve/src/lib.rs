//! A file server whose congestion control is chosen for each connection.
//!
//! Parts that know little of each other: [`site`] answers a request's head with a response, whatever
//! carries it; `choice` says what a connection is given, by its listener or by a policy; `tcp` carries
//! HTTP/1.1 and HTTP/2 over the kernel's TCP, `quic` HTTP/3 over uncork's QUIC, and both put in force what
//! was chosen; `evidence` keeps what is known of each response and its connection, and `admin` tells
//! operators. What it is told by files may be replaced while it serves: policy, databases, certificate.
#![cfg(target_os = "linux")]

mod admin;
mod choice;
mod clock;
mod error;
mod identity;
mod limits;
mod quic;
mod server;
mod shared;
pub mod site;
mod sources;
mod spec;
mod tcp;
mod telemetry;
mod timing;
mod writable;

pub use admin::{AdminAddress, AdminSpec};
pub use error::ServeError;
pub use identity::Identity;
pub use limits::Limits;
pub use server::Server;
pub use sources::Reloaded;
pub use spec::ServerSpec;
pub use tcp::{ListenerSpec, Listening};
pub use telemetry::{RecordsSpec, RecordsSummary};
