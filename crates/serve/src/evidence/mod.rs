//! What became of each response, as the kernel knows it.
//!
//! How long a server takes to write a response says how large the send buffer is. What counts is what
//! the client has acknowledged, and how long the connection was busy with it.

mod exchange;
mod observer;
mod probe;
mod records;
mod wire;

pub(crate) use observer::{Labels, Observer};
pub(crate) use probe::Probe;
pub use records::RecordsSummary;
pub(crate) use records::{Records, Writer};
pub(crate) use wire::{Patience, Wire};
