//! Monitors the host's TCP connections: what they do, what limits them, and a record of each
//! connection that ends.
//!
//! [`Session`] takes a pass over all sockets every period, and receives the kernel's close events of
//! destroyed sockets in between. It can also replay a recorded session. [`Tracker`], [`Row`] and
//! [`View`] are pure: their input is [`Event`]s, without clock and kernel.
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

mod event;
mod exporter;
mod live;
mod metrics;
mod policy_choice;
mod record;
mod row;
mod sample;
mod service_port;
mod session;
mod tape;
#[cfg(test)]
mod tests;
mod text;
mod totals;
mod tracker;
mod view;
mod why;

pub use event::{Destroyed, Event, Moment, Pass};
pub use exporter::Exporter;
pub use metrics::{METRICS_TYPE, metrics};
pub use policy_choice::{Policies, PolicyChoice, ShortName};
pub use record::UNKNOWN_CC;
pub use row::{GroupBy, Name, Row, SortBy};
pub use sample::{BbrSample, SocketSample};
pub use session::{Session, Tick, WatchError, WatchSpec};
pub use tape::{TapeError, TapeReader, TapeWriter, WATCH_SCHEMA};
pub use totals::{Label, Sums, Totals};
pub use tracker::{Tracked, Tracker};
pub use uncork_records::{RecordsSpec, RecordsSummary};
pub use view::{Key, View, ViewSettings};
pub use why::{Limit, Limits};
