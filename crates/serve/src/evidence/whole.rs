//! A connection as a whole: all its responses together.

use std::sync::Arc;
use std::time::Instant;

use uncork_diag::TcpInfo;
use uncork_flow::{Distribution, FlowRecord, Scope, Service};
use uncork_units::TimeDelta;

use super::about::{About, Labels, quantiles};
use super::metrics::Totals;
use crate::choice::InForce;

/// What is known of a connection so far.
#[derive(Debug)]
pub(super) struct Whole {
    /// What was in force at last.
    pub(super) in_force: Arc<InForce>,
    /// `tcp` or `tls`, until a request says which HTTP it is.
    pub(super) protocol: &'static str,
    host: Option<String>,
    responses: u64,
    broken_off: u64,
    /// Of bodies.
    bytes_delivered: u64,
    /// When the socket took the first bytes of a response.
    first: Option<Instant>,
    rtts: Distribution,
    /// What the kernel told at last.
    pub(super) last: Option<TcpInfo>,
    /// When a round trip was counted at last.
    pub(super) sampled: Option<Instant>,
}

impl Whole {
    pub(super) fn new(in_force: Arc<InForce>, protocol: &'static str) -> Self {
        Self {
            in_force,
            protocol,
            host: None,
            responses: 0,
            broken_off: 0,
            bytes_delivered: 0,
            first: None,
            rtts: Distribution::new(),
            last: None,
            sampled: None,
        }
    }

    /// A request has come.
    pub(super) fn begin(&mut self, about: &About, in_force: &Arc<InForce>) {
        self.protocol = about.protocol;
        self.in_force = Arc::clone(in_force);
        if self.responses == 0 && self.host.is_none() {
            self.host.clone_from(&about.host);
        }
    }

    /// A response has come to the end that `record` tells of.
    pub(super) fn add(&mut self, record: &FlowRecord, first: Option<Instant>, rtts: &Distribution) {
        let broken_off = record.service.as_ref().map_or(0, |service| service.broken_off);
        self.responses += 1;
        self.broken_off += broken_off;
        self.bytes_delivered += record.bytes_delivered;
        self.first = self.first.or(first);
        self.rtts.merge(rtts);
    }

    /// The record of a connection that was closed at the time `closed`.
    pub(super) fn record(&self, closed: Instant, labels: &Labels) -> FlowRecord {
        let (accepted, date) = labels.accepted;
        let nanos = |time: Instant| time.saturating_duration_since(accepted).as_nanos() as u64;
        let count = |of: fn(&TcpInfo) -> u64| self.last.as_ref().map_or(0, of);
        let limited = |of: fn(&TcpInfo) -> Option<TimeDelta>| {
            self.last.as_ref().and_then(of).map(TimeDelta::as_nanos)
        };
        let service = Service {
            host: self.host.clone(),
            responses: self.responses,
            broken_off: self.broken_off,
            min_rtt_ns: limited(|info| info.min_rtt),
            delivery_rate_bps: self.last.and_then(|info| Some(info.delivery_rate?.bits_per_sec())),
            rwnd_limited_ns: limited(|info| info.rwnd_limited),
            sndbuf_limited_ns: limited(|info| info.sndbuf_limited),
            ..labels.service(Scope::Connection, date, self.protocol)
        };
        FlowRecord {
            completion_ns: Some(nanos(closed)),
            first_byte_ns: self.first.map(nanos),
            busy_ns: count(|info| info.busy_time.map_or(0, TimeDelta::as_nanos)),
            bytes_delivered: self.bytes_delivered,
            bytes_acked: count(|info| info.bytes_acked.unwrap_or(0)),
            bytes_sent: count(|info| info.bytes_sent.unwrap_or(0)),
            bytes_retransmitted: count(|info| info.bytes_retrans.unwrap_or(0)),
            packets_sent: count(|info| info.data_segs_out.unwrap_or(0).into()),
            packets_lost: count(|info| info.total_retrans.into()),
            packets_marked: count(|info| info.delivered_ce.unwrap_or(0).into()),
            timeouts: count(|info| info.total_rto.unwrap_or(0).into()),
            rtt_ms: quantiles(&self.rtts, self.last.and_then(|info| info.min_rtt)),
            service: Some(service),
            ..labels.record(&self.in_force, accepted)
        }
    }
}

impl From<&TcpInfo> for Totals {
    fn from(info: &TcpInfo) -> Self {
        Self {
            bytes_acked: info.bytes_acked.unwrap_or(0),
            bytes_sent: info.bytes_sent.unwrap_or(0),
            bytes_retransmitted: info.bytes_retrans.unwrap_or(0),
            packets_sent: info.data_segs_out.unwrap_or(0).into(),
            packets_lost: info.total_retrans.into(),
            timeouts: info.total_rto.unwrap_or(0).into(),
        }
    }
}
