//! The statistics of a whole connection, over all its responses.

use std::sync::Arc;
use std::time::{Duration, Instant};

use smol_str::SmolStr;
use uncork_flow::{Distribution, FlowRecord, Scope, Service, TransportFigures, rtt_quantiles};

use super::about::{About, Labels};
use super::metrics::{Live, Metrics};
use crate::choice::ActiveSettings;

/// Minimum interval between round-trip samples while a response is in progress.
const SAMPLING: Duration = Duration::from_millis(90);

/// The statistics of an open connection, which counts as open until this is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionStats {
    live: Live,
    /// The latest settings in effect.
    active: Arc<ActiveSettings>,
    /// `tcp`, `tls` or `quic`, until the first request determines the HTTP version.
    protocol: &'static str,
    host: Option<SmolStr>,
    /// Whether a request has arrived.
    has_begun: bool,
    responses: u64,
    broken_off: u64,
    /// Body bytes.
    bytes_delivered: u64,
    /// When the transport accepted the first bytes of a response.
    first: Option<Instant>,
    rtts: Distribution,
    /// The latest transport counters.
    last: Option<TransportFigures>,
    /// The time of the latest round-trip sample.
    sampled: Option<Instant>,
}

impl ConnectionStats {
    /// Starts the statistics of a connection with the settings `active`.
    pub(crate) fn new(
        metrics: &Arc<Metrics>,
        labels: &Labels,
        active: Arc<ActiveSettings>,
        protocol: &'static str,
    ) -> Self {
        Self {
            live: Live::open(metrics, labels.key(protocol, &active)),
            active,
            protocol,
            host: None,
            has_begun: false,
            responses: 0,
            broken_off: 0,
            bytes_delivered: 0,
            first: None,
            rtts: Distribution::new(),
            last: None,
            sampled: None,
        }
    }

    /// A request has arrived. Returns whether it is the first.
    pub(crate) fn begin(
        &mut self,
        about: &About,
        active: &Arc<ActiveSettings>,
        labels: &Labels,
    ) -> bool {
        if self.protocol != about.protocol || !Arc::ptr_eq(&self.active, active) {
            self.live.becomes(labels.key(about.protocol, active));
            self.protocol = about.protocol;
            self.active = Arc::clone(active);
        }
        if self.responses == 0 && self.host.is_none() {
            self.host.clone_from(&about.host);
        }
        !std::mem::replace(&mut self.has_begun, true)
    }

    /// A response has ended; `record` is its record.
    pub(crate) fn add(&mut self, record: &FlowRecord, first: Option<Instant>, rtts: &Distribution) {
        let broken_off = record.service.as_ref().map_or(0, |service| service.broken_off);
        self.responses += 1;
        self.broken_off += broken_off;
        self.bytes_delivered += record.bytes_delivered;
        self.first = self.first.or(first);
        self.rtts.merge(rtts);
    }

    /// Records the transport counters at the time `at`; `is_sending`: whether a response is
    /// being sent.
    pub(crate) fn note(&mut self, at: Instant, figures: &TransportFigures, is_sending: bool) {
        self.live.moved(figures);
        self.last = Some(*figures);
        // The number of samples per second must not depend on how often this is called.
        let is_time = self.sampled.is_none_or(|before| before + SAMPLING <= at);
        if let (Some(rtt), Some(min), true) = (figures.rtt, figures.min_rtt, is_sending && is_time)
        {
            self.sampled = Some(at);
            self.live.queues(rtt, min);
        }
    }

    /// The record of a connection that was closed at the time `closed`.
    pub(crate) fn record(&self, closed: Instant, labels: &Labels) -> FlowRecord {
        let (accepted, date) = labels.accepted;
        let nanos = |time: Instant| time.saturating_duration_since(accepted).as_nanos() as u64;
        let service = Service {
            host: self.host.clone(),
            responses: self.responses,
            broken_off: self.broken_off,
            ..labels.service(Scope::Connection, date, self.protocol)
        };
        let last = self.last.unwrap_or_default();
        let record = FlowRecord {
            rtt_ms: rtt_quantiles(&self.rtts, last.min_rtt),
            completion_ns: Some(nanos(closed)),
            first_byte_ns: self.first.map(nanos),
            bytes_delivered: self.bytes_delivered,
            service: Some(service),
            ..labels.record(&self.active, accepted)
        };
        last.fill(record)
    }
}
