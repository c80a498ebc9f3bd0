//! Real QUIC endpoints in virtual time.
//!
//! [`run`] takes the same [`uncork_sim::RunSpec`] as the segment simulator and returns the same
//! records. Each flow has two endpoints of the QUIC stack, with handshake, encryption and
//! [`uncork_quic`]'s controllers: the code that servers ship. Their datagrams travel over the paths
//! of [`uncork_sim`].
//!
//! Equal specifications give equal results: the stack's random numbers come from the run's seed.
//! TLS uses its own randomness, which changes packet contents but not their sizes or times.
//!
//! Byte counts of senders are of whole QUIC packets including headers. Byte counts of receivers are
//! payload.
#![forbid(unsafe_code)]

mod address;
mod client;
mod error;
mod flow;
mod identity;
mod peer;
mod record;
mod run;
mod server;

pub use error::QuicSimError;
pub use run::{QuicRun, run};
