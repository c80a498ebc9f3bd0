//! HTTP/3 over QUIC, with uncork's own congestion control.
//!
//! Each listener has one worker per core. Events of a connection are handled by [`app`] on its
//! worker's thread. The tasks of its requests run on the same thread.

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
mod resume;
mod steering;
mod tls;

pub(crate) use listener::{Bound, Listener, QuicContext, QuicHealth, bind, identity, server};
pub(crate) use qlog::{QlogFiles, QlogWriter};
pub(crate) use resume::ResumeStore;
