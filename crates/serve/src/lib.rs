//! A file server whose congestion control is chosen for each connection.
//!
//! Four parts that know little of each other: [`site`] answers a request's head with a response,
//! whatever carries it; `choice` says what a connection is given, by its listener or by a policy; `tcp`
//! carries HTTP/1.1 and HTTP/2 over the kernel's TCP, and puts in force what was chosen; `evidence` tells
//! of each response what the kernel knows of its connection. What it is told by files may be replaced
//! while it serves: policy, databases, certificate.
#![cfg(target_os = "linux")]

mod admin;
mod choice;
mod clock;
mod error;
mod evidence;
mod identity;
mod limits;
mod quic;
mod server;
pub mod site;
mod sources;
mod swap;
mod tcp;

pub use admin::{AdminAddress, AdminSpec};
pub use error::ServeError;
pub use evidence::{RecordsSpec, RecordsSummary};
pub use identity::Identity;
pub use limits::Limits;
pub use server::{Server, ServerSpec};
pub use sources::Reloaded;
pub use tcp::{ListenerSpec, Listening};
