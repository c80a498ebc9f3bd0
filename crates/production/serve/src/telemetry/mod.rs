//! Telemetry of responses and connections, measured by the transport.
//!
//! The time in which a server writes a response depends on the size of the send buffer. So
//! telemetry measures when the client has acknowledged the response, and how long the connection
//! was busy with it.

mod about;
mod connection_stats;
mod exchange;
mod metrics;
mod observer;
mod position;
mod probe;
mod progress;
mod shared;

pub(crate) use about::{About, Labels, host_name};
pub(crate) use connection_stats::ConnectionStats;
pub(crate) use metrics::{CONTENT_TYPE as METRICS_TYPE, Metrics};
pub(crate) use observer::{Observer, Occasion};
pub(crate) use probe::{Socket, SocketLookup};
pub(crate) use progress::{ConnectionProgress, Timeouts};
pub(crate) use shared::Telemetry;
