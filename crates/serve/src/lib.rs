//! A file server whose congestion control is chosen per listener.
//!
//! Three parts that know little of each other: [`site`] answers a request's head with a response,
//! whatever carries it; `tcp` carries HTTP/1.1 and HTTP/2 over the kernel's TCP, each listener with
//! a controller of its own; `evidence` tells of each response what the kernel knows of its connection.
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

mod clock;
mod error;
mod evidence;
mod identity;
mod limits;
mod server;
pub mod site;
mod tcp;

pub use error::ServeError;
pub use evidence::RecordsSummary;
pub use identity::Identity;
pub use limits::Limits;
pub use server::{Server, ServerSpec};
pub use tcp::{ListenerSpec, Listening};
