//! HTTP/1.1 and HTTP/2 over the kernel's TCP.

mod accept;
mod answer;
mod coalescing;
mod congestion;
mod connection;
mod frames;
mod http1;
mod http2;
mod http2_stream;
mod linger;
mod listener;
mod preface;
mod proxy_protocol;
mod socket;
mod steering;
mod sys;
mod tls;

pub(crate) use accept::accept;
pub(crate) use congestion::has_all_of;
pub(crate) use connection::TcpContext;
pub(crate) use frames::{FrameEvent, FrameScanner};
pub(crate) use listener::Bound;
pub use listener::{ListenerSpec, Listening};
pub(crate) use tls::acceptor;
