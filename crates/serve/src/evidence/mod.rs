//! What became of each response, as the kernel knows it.
//!
//! How long a server takes to write a response says how large the send buffer is. What counts is what
//! the client has acknowledged, and how long the connection was busy with it.

mod about;
mod exchange;
mod metrics;
mod observer;
mod probe;
mod records;
mod shared;
mod whole;
mod wire;

pub(crate) use about::{About, Labels, host_name};
pub(crate) use metrics::{CONTENT_TYPE as METRICS_TYPE, Metrics};
pub(crate) use observer::Observer;
pub(crate) use probe::{Ends, Socket};
pub(crate) use records::{Records, Writer};
pub use records::{RecordsSpec, RecordsSummary};
pub(crate) use shared::Evidence;
pub(crate) use whole::Whole;
pub(crate) use wire::{Patience, Wire};
