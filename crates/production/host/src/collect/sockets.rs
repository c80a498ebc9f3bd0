//! The TCP sockets of the calling thread's namespace, through sock_diag(7).

use uncork_diag::{BbrInfo, Connection, Diag, DiagError, Query, StateSet, TcpInfo, TcpState};
use uncork_units::{Rate, TimeDelta};

use crate::facts::{Bbr, Socket};

pub(super) fn sockets() -> Result<Vec<Socket>, DiagError> {
    let states = StateSet::SENDING.with(TcpState::Listen);
    let mut sockets = Vec::new();
    Diag::open()?.dump(&Query { states, has_storage: true, ..Query::default() }, |connection| {
        sockets.extend(socket(connection));
    })?;
    Ok(sockets)
}

/// BBR's version, if the connection runs it: versions 2 and 3 append to the attribute.
pub(super) fn version(connection: &Connection) -> Option<u8> {
    connection.bbr().map(BbrInfo::version)
}

fn socket(connection: &Connection) -> Option<Socket> {
    let info = connection.info?;
    let is_listener = connection.state == TcpState::Listen;
    let millis = |span: Option<TimeDelta>| span.map_or(0, TimeDelta::as_nanos) / 1_000_000;
    Some(Socket {
        local: connection.local,
        remote: (!is_listener).then_some(connection.remote),
        cc: connection.cc?.as_str().to_owned(),
        age_s: if is_listener { 0 } else { age(&info).as_nanos() / 1_000_000_000 },
        pacing_cap: info.max_pacing_rate.filter(|cap| *cap < Rate::MAX).map(Rate::bytes_per_sec),
        bandwidth: bandwidth(connection, &info).map(Rate::bytes_per_sec),
        min_rtt_us: info.min_rtt.map(|rtt| rtt.as_nanos() / 1_000),
        busy_ms: millis(info.busy_time),
        sndbuf_limited_ms: millis(info.sndbuf_limited),
        sent: info.bytes_sent.unwrap_or(0),
        retransmitted: info.bytes_retrans.unwrap_or(0),
        bbr: version(connection).map(|version| Bbr { version }),
    })
}

/// The kernel does not report when a socket was created. Its own timers are lower bounds.
fn age(info: &TcpInfo) -> TimeDelta {
    let busy = info.busy_time.unwrap_or_default();
    info.last_data_sent.max(info.last_data_recv).max(info.last_ack_recv).max(busy)
}

fn bandwidth(connection: &Connection, info: &TcpInfo) -> Option<Rate> {
    let measured = info.delivery_rate.filter(|_| !info.delivery_rate_app_limited);
    connection.bbr().map(|bbr| bbr.bw).or(measured)
}
