//! HTTP/1.1 and HTTP/2 over the kernel's TCP.

mod answer;
mod connection;
mod limits;
mod listener;
mod server;
mod socket;
mod tls;

pub use limits::Limits;
pub use listener::{ListenerSpec, Listening};
pub use server::{Server, ServerSpec};
pub use tls::Identity;
