//! Conversion of TCP's counters to those of records.

use uncork_flow::TransportFigures;

use crate::TcpInfo;

impl From<&TcpInfo> for TransportFigures {
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
