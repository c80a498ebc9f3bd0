//! HTTP/3 over QUIC, whose congestion control is uncork's own.
//!
//! Each listener has a worker for each core. What happens to a connection comes to [`app`] on its
//! worker's thread, where the futures of its requests run as well.

mod account;
mod answer;
mod app;
mod busy;
mod connection;
mod exchange;
mod figures;
mod listener;
mod qlog;
mod responses;
mod steering;
mod tls;

pub(crate) use listener::{Bound, Listener, QuicContext, QuicHealth, bind, identity, server};
pub(crate) use qlog::{QlogFiles, QlogWriter};
