//! Real QUIC endpoints in virtual time.
//!
//! [`run`] takes the same [`uncork_sim::RunSpec`] as the simulator of segments and gives the same
//! records. Hosts are two endpoints of the stack for each flow, with handshake, encryption and
//! [`uncork_quic`]'s controllers: what a server ships. Their datagrams travel the paths of
//! [`uncork_sim`].
//!
//! Equal specifications give equal results: the stack draws from the run's seed. What TLS draws for
//! itself changes what is in the packets, but neither their sizes nor their times.
//!
//! Byte counts of senders are of whole QUIC packets, headers included; those of receivers are payload.
#![forbid(unsafe_code)]

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
