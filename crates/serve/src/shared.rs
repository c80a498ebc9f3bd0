//! State that all connections of a server share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use uncork_flow::FlowRecord;

use crate::admission::Admission;
use crate::limits::Limits;
use crate::quic::QlogFiles;
use crate::site::Site;
use crate::telemetry::{Telemetry, Timeouts};

/// How the server ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stopping {
    /// Since when it accepts no connections.
    pub(crate) since: Instant,
    /// When it breaks off what is still under way.
    pub(crate) at: Instant,
    /// How long it waits for a client over QUIC that takes nothing.
    pub(crate) stall: Duration,
    /// How long a client that was told to go, or could not be told, may still use its connection: a request may be on
    /// its way, or a response not have been looked at.
    pub(crate) linger: Duration,
}

/// `None` while the server accepts connections.
pub(crate) type Stop = watch::Receiver<Option<Stopping>>;

/// How long a client that was told to go may take otherwise.
pub(crate) const LINGER: Duration = Duration::from_secs(1);

/// What connections of all listeners use.
pub(crate) struct Shared {
    pub(crate) site: Arc<Site>,
    pub(crate) tls: Option<TlsAcceptor>,
    pub(crate) limits: Limits,
    /// Connections of a listener over TCP: a connection needs a descriptor.
    pub(crate) tcp_connections: usize,
    pub(crate) stop: Stop,
    pub(crate) admission: Arc<Admission>,
    pub(crate) telemetry: Option<Arc<Telemetry>>,
    pub(crate) qlog: Option<QlogFiles>,
    pub(crate) epoch: Instant,
    /// Connections accepted so far.
    pub(crate) connections: AtomicU32,
}

impl Shared {
    /// Whether records or metrics are configured.
    pub(crate) fn has_telemetry(&self) -> bool {
        self.telemetry.is_some()
    }

    /// How long clients over QUIC may keep the server waiting: whether they are still there only they could tell.
    pub(crate) fn timeouts(&self) -> Timeouts {
        let timeouts = self.limits.timeouts();
        let stall = self.stop.borrow().map_or(timeouts.stall, |it| it.stall);
        Timeouts { stall: timeouts.stall.min(stall), ..timeouts }
    }

    /// How long a client that was told to go may take.
    pub(crate) fn linger(&self) -> Duration {
        self.stop.borrow().map_or(LINGER, |it| it.linger)
    }

    /// Counts the record and writes it, if that is configured.
    pub(crate) fn leave(&self, record: FlowRecord) {
        if let Some(telemetry) = &self.telemetry {
            telemetry.leave(record);
        }
    }

    /// The number of a connection that was just accepted.
    pub(crate) fn next_connection(&self) -> u32 {
        self.connections.fetch_add(1, Ordering::Relaxed)
    }
}
