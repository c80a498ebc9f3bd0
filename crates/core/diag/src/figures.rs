//! Conversion of TCP's counters to those of records.

use uncork_flow::{EcnUse, TransportFigures};

use crate::TcpInfo;

impl From<&TcpInfo> for TransportFigures {
    fn from(info: &TcpInfo) -> Self {
        Self {
            bytes_acked: payload_acked(info),
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
            ecn: Some(ecn_use(info)),
            ecn_evidence: None,
            start: None,
        }
    }
}

/// What was negotiated, and with AccECN (Linux 6.18) what arrived: the kernel does not report what it sends.
fn ecn_use(info: &TcpInfo) -> EcnUse {
    let has_l4s = info.acc_ecn.is_some_and(|it| it.delivered_e1_bytes > it.delivered_e0_bytes);
    match (info.options.ecn(), has_l4s) {
        (false, _) => EcnUse::None,
        (true, false) => EcnUse::Classic,
        (true, true) => EcnUse::L4s,
    }
}

/// The kernel counts the SYN of `connect` and the FIN as a byte each (`tcp_ack_update_window`,
/// `snd_una`). This removes them: no more payload is acknowledged than was sent.
fn payload_acked(info: &TcpInfo) -> u64 {
    let acked = info.bytes_acked.unwrap_or(0);
    match (info.bytes_sent, info.bytes_retrans) {
        (Some(sent), Some(again)) => acked.min(sent.saturating_sub(again)),
        _ => acked,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn syn_and_fin_are_no_payload() {
        let info = |acked, sent, again| TcpInfo {
            bytes_acked: Some(acked),
            bytes_sent: sent,
            bytes_retrans: again,
            ..TcpInfo::default()
        };
        let acked = |info: TcpInfo| TransportFigures::from(&info).bytes_acked;
        assert_eq!(acked(info(1001, Some(1500), Some(500))), 1000);
        assert_eq!(acked(info(700, Some(1500), Some(500))), 700);
        // Before Linux 4.19.
        assert_eq!(acked(info(1001, None, None)), 1001);
    }
}
