//! One request and its response.

use std::sync::Arc;
use std::time::Instant;

use uncork_diag::TcpInfo;
use uncork_flow::{Distribution, FlowRecord, Service};
use uncork_units::{Rate, TimeDelta};

use super::about::{About, Labels, quantiles};
use crate::choice::InForce;

/// What is known of a response so far.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) began: Instant,
    /// What was in force for it.
    in_force: Arc<InForce>,
    about: About,
    /// What the kernel knew of the connection then.
    pub(super) before: TcpInfo,
    /// Bytes that the connection's socket had taken by then.
    pub(super) from: u64,
    /// When the socket took more for the first time.
    pub(super) first: Option<Instant>,
    /// The length of the body that was promised.
    pub(super) size: u64,
    /// What the protocol has taken of the body; `None` while it may take more.
    pub(super) taken: Option<u64>,
    /// Bytes that the socket had taken when all of the response was among them.
    pub(super) end: Option<u64>,
    /// Smoothed round-trip times, as often as the kernel was asked.
    pub(super) rtts: Distribution,
    /// What the kernel told at last.
    pub(super) last: TcpInfo,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// The client has acknowledged all of it, at this time.
    Acknowledged(Instant),
    /// It was broken off, or the connection ended before.
    BrokenOff,
}

impl Exchange {
    pub(super) fn new(
        began: Instant,
        (about, in_force): (About, Arc<InForce>),
        before: &TcpInfo,
        (from, size): (u64, u64),
    ) -> Self {
        Self {
            began,
            in_force,
            about,
            before: *before,
            from,
            first: None,
            size,
            taken: None,
            end: None,
            rtts: Distribution::new(),
            last: *before,
        }
    }

    pub(super) fn note(&mut self, info: &TcpInfo) {
        self.last = *info;
        self.rtts.record(info.rtt.as_nanos());
    }

    pub(super) fn is_broken_off(&self) -> bool {
        self.taken.is_some_and(|taken| taken < self.size)
    }

    /// The record: differences between what the kernel told before and at last, so that responses that
    /// share the connection for a while share these, too.
    pub(super) fn record(&self, ending: Ending, labels: &Labels) -> FlowRecord {
        let nanos = |time: Instant| time.saturating_duration_since(self.began).as_nanos() as u64;
        let since = |of: fn(&TcpInfo) -> u64| of(&self.last).saturating_sub(of(&self.before));
        // What is behind its end is the next response's.
        let most = self.end.map_or(u64::MAX, |end| end - self.from);
        let acked = since(|info| info.bytes_acked.unwrap_or(0)).min(most);
        let taken = self.taken.unwrap_or(0);
        let completion = match ending {
            Ending::Acknowledged(at) => Some(nanos(at)),
            Ending::BrokenOff => None,
        };
        FlowRecord {
            completion_ns: completion,
            first_byte_ns: self.first.map(nanos),
            busy_ns: since(|info| info.busy_time.map_or(0, TimeDelta::as_nanos)),
            size_bytes: Some(self.size),
            bytes_delivered: if completion.is_some() { taken } else { taken.min(acked) },
            bytes_acked: acked,
            bytes_sent: since(|info| info.bytes_sent.unwrap_or(0)),
            bytes_retransmitted: since(|info| info.bytes_retrans.unwrap_or(0)),
            packets_sent: since(|info| info.data_segs_out.unwrap_or(0).into()),
            packets_lost: since(|info| info.total_retrans.into()),
            packets_marked: since(|info| info.delivered_ce.unwrap_or(0).into()),
            timeouts: since(|info| info.total_rto.unwrap_or(0).into()),
            rtt_ms: quantiles(&self.rtts, self.last.min_rtt),
            service: Some(self.service(ending, labels)),
            ..labels.record(&self.in_force, self.began)
        }
    }

    fn service(&self, ending: Ending, labels: &Labels) -> Service {
        let limited = |of: fn(&TcpInfo) -> Option<TimeDelta>| {
            let (before, last) = (of(&self.before)?, of(&self.last)?);
            Some(last.as_nanos().saturating_sub(before.as_nanos()))
        };
        Service {
            min_rtt_ns: self.last.min_rtt.map(TimeDelta::as_nanos),
            delivery_rate_bps: self.last.delivery_rate.map(Rate::bits_per_sec),
            rwnd_limited_ns: limited(|info| info.rwnd_limited),
            sndbuf_limited_ns: limited(|info| info.sndbuf_limited),
            ..labels.response(&self.about, ending == Ending::BrokenOff)
        }
    }
}
