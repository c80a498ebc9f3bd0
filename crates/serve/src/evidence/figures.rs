//! What a transport tells of a connection.

use uncork_diag::TcpInfo;
use uncork_flow::{Distribution, FlowRecord, Service};
use uncork_units::{Rate, TimeDelta};

use super::about::quantiles;

/// Counts of a connection from its beginning, and what its transport measured last.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Figures {
    pub(crate) bytes_acked: u64,
    pub(crate) bytes_sent: u64,
    pub(crate) bytes_retransmitted: u64,
    pub(crate) packets_sent: u64,
    pub(crate) packets_lost: u64,
    pub(crate) packets_marked: u64,
    pub(crate) timeouts: u64,
    /// How long something was on its way or waited to be sent.
    pub(crate) busy: TimeDelta,
    /// How long of that the client's windows held it back.
    pub(crate) rwnd_limited: Option<TimeDelta>,
    /// How long too small a send buffer did.
    pub(crate) sndbuf_limited: Option<TimeDelta>,
    /// How long there was too little to send.
    pub(crate) app_limited: Option<TimeDelta>,
    /// Smoothed.
    pub(crate) rtt: Option<TimeDelta>,
    pub(crate) min_rtt: Option<TimeDelta>,
    pub(crate) delivery_rate: Option<Rate>,
}

impl Figures {
    /// What was counted since `before`, and what was measured last.
    pub(crate) fn since(&self, before: &Self) -> Self {
        let count = |of: fn(&Self) -> u64| of(self).saturating_sub(of(before));
        let limited = |of: fn(&Self) -> Option<TimeDelta>| Some(of(self)? - of(before)?);
        Self {
            bytes_acked: count(|it| it.bytes_acked),
            bytes_sent: count(|it| it.bytes_sent),
            bytes_retransmitted: count(|it| it.bytes_retransmitted),
            packets_sent: count(|it| it.packets_sent),
            packets_lost: count(|it| it.packets_lost),
            packets_marked: count(|it| it.packets_marked),
            timeouts: count(|it| it.timeouts),
            busy: self.busy - before.busy,
            rwnd_limited: limited(|it| it.rwnd_limited),
            sndbuf_limited: limited(|it| it.sndbuf_limited),
            app_limited: limited(|it| it.app_limited),
            ..*self
        }
    }

    /// `record` with all of it, and where `rtts` lie.
    pub(crate) fn fill(&self, rtts: &Distribution, record: FlowRecord) -> FlowRecord {
        let nanos = |time: Option<TimeDelta>| time.map(TimeDelta::as_nanos);
        let service = record.service.map(|service| Service {
            min_rtt_ns: nanos(self.min_rtt),
            delivery_rate_bps: self.delivery_rate.map(Rate::bits_per_sec),
            rwnd_limited_ns: nanos(self.rwnd_limited),
            sndbuf_limited_ns: nanos(self.sndbuf_limited),
            app_limited_ns: nanos(self.app_limited),
            ..service
        });
        FlowRecord {
            busy_ns: self.busy.as_nanos(),
            bytes_acked: self.bytes_acked,
            bytes_sent: self.bytes_sent,
            bytes_retransmitted: self.bytes_retransmitted,
            packets_sent: self.packets_sent,
            packets_lost: self.packets_lost,
            packets_marked: self.packets_marked,
            timeouts: self.timeouts,
            rtt_ms: quantiles(rtts, self.min_rtt),
            service,
            ..record
        }
    }
}

impl From<&TcpInfo> for Figures {
    fn from(info: &TcpInfo) -> Self {
        Self {
            bytes_acked: info.bytes_acked.unwrap_or(0),
            bytes_sent: info.bytes_sent.unwrap_or(0),
            bytes_retransmitted: info.bytes_retrans.unwrap_or(0),
            packets_sent: info.data_segs_out.unwrap_or(0).into(),
            packets_lost: info.total_retrans.into(),
            packets_marked: info.delivered_ce.unwrap_or(0).into(),
            timeouts: info.total_rto.unwrap_or(0).into(),
            busy: info.busy_time.unwrap_or_default(),
            rwnd_limited: info.rwnd_limited,
            sndbuf_limited: info.sndbuf_limited,
            app_limited: None,
            rtt: Some(info.rtt),
            min_rtt: info.min_rtt,
            delivery_rate: info.delivery_rate,
        }
    }
}
