//! The host's TCP connections, live: what they do, what limits them, and a record of each that ends.
//!
//! [`Session`] takes a pass over all sockets each period, and between them the kernel's notices of destroyed sockets; or
//! both from a recorded session. [`Tracker`], [`Row`] and [`View`] are pure: they see [`Event`]s, no clock and no kernel.

mod event;
mod exporter;
mod live;
mod metrics;
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
pub use metrics::{METRICS_TYPE, metrics};
pub use row::{GroupBy, Name, Row, SortBy};
pub use sample::{BbrSample, SocketSample};
pub use session::{Session, Turn, WatchError, WatchSpec};
pub use tape::{TapeError, TapeReader, TapeWriter, WATCH_SCHEMA};
pub use totals::{Label, Sums, Totals};
pub use tracker::{Tracked, Tracker};
pub use uncork_records::{RecordsSpec, RecordsSummary};
pub use view::{Key, View, ViewSettings};
pub use why::{Limit, Limits};
