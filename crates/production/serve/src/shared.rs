//! The state shared by all connections of a server.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use tokio::sync::watch;
use uncork_flow::FlowRecord;

use crate::access_log::AccessLog;
use crate::admission::Admission;
use crate::limits::Limits;
use crate::live::Live;
use crate::quic::{QlogFiles, ResumeStore};
use crate::telemetry::{Telemetry, Timeouts};

/// The deadlines of a shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stopping {
    /// When the server stopped accepting connections.
    pub(crate) since: Instant,
    /// When it aborts the remaining responses.
    pub(crate) at: Instant,
    /// How long it waits for a QUIC client that makes no progress.
    pub(crate) stall: Duration,
    /// How long a client may still use its connection after the server asked it to leave, or if the server
    /// cannot ask: a request may be in flight, or the client may not have processed a response yet.
    pub(crate) linger: Duration,
}

/// `None` while the server accepts connections.
pub(crate) type Stop = watch::Receiver<Option<Stopping>>;

/// The default of [`Stopping::linger`].
pub(crate) const LINGER: Duration = Duration::from_secs(1);

/// The state shared by the connections of all listeners.
pub(crate) struct Shared {
    /// What a reload can change.
    pub(crate) live: ArcSwap<Live>,
    pub(crate) limits: Limits,
    /// Maximum number of TCP connections per listener: each needs a descriptor.
    pub(crate) tcp_connections: usize,
    pub(crate) stop: Stop,
    pub(crate) admission: Arc<Admission>,
    pub(crate) telemetry: Option<Arc<Telemetry>>,
    pub(crate) qlog: Option<QlogFiles>,
    pub(crate) access_log: Option<AccessLog>,
    /// What ended QUIC connections observed.
    pub(crate) resume: Arc<ResumeStore>,
    pub(crate) epoch: Instant,
    /// Connections accepted so far.
    pub(crate) connections: AtomicU32,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl Shared {
    /// Whether records or metrics are configured.
    pub(crate) fn has_telemetry(&self) -> bool {
        self.telemetry.is_some()
    }

    /// The timeouts of QUIC clients. During a shutdown the stall timeout is shorter, because a
    /// vanished client cannot be detected otherwise.
    pub(crate) fn timeouts(&self) -> Timeouts {
        let timeouts = self.limits.timeouts();
        let stall = self.stop.borrow().map_or(timeouts.stall, |it| it.stall);
        Timeouts { stall: timeouts.stall.min(stall), ..timeouts }
    }

    /// How long a client may still use its connection after the server asked it to leave.
    pub(crate) fn linger(&self) -> Duration {
        self.stop.borrow().map_or(LINGER, |it| it.linger)
    }

    /// Counts the record, and writes it if records are configured.
    pub(crate) fn leave(&self, record: FlowRecord) {
        if let Some(telemetry) = &self.telemetry {
            telemetry.leave(record);
        }
    }

    /// The number of a new connection.
    pub(crate) fn next_connection(&self) -> u32 {
        self.connections.fetch_add(1, Ordering::Relaxed)
    }
}
