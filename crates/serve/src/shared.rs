//! State that all connections of a server share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use uncork_flow::FlowRecord;

use crate::admission::Admission;
use crate::limits::Limits;
use crate::quic::QlogFiles;
use crate::site::Site;
use crate::telemetry::Telemetry;

/// When to end; `None` while the server accepts requests.
pub(crate) type Stop = watch::Receiver<Option<Instant>>;

/// What connections of all listeners use.
pub(crate) struct Shared {
    pub(crate) site: Arc<Site>,
    pub(crate) tls: Option<TlsAcceptor>,
    pub(crate) limits: Limits,
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

    /// Counts the record and writes it, if that is configured.
    pub(crate) fn leave(&self, record: FlowRecord) {
        if let Some(telemetry) = &self.telemetry {
    /// Connections of a listener over TCP: a connection needs a descriptor.
    pub(crate) tcp_connections: usize,
    pub(crate) stop: Stop,
            telemetry.leave(record);
        }
    }

    /// The number of a connection that was just accepted.
    pub(crate) fn next_connection(&self) -> u32 {
        self.connections.fetch_add(1, Ordering::Relaxed)
    }
}
