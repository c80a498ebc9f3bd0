//! A sample of a socket.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use uncork_diag::{Bbr2Info, BbrState, CcName, Connection, TcpInfo};
use uncork_flow::serialized::{maybe_bits_per_sec, maybe_nanos, nanos};
use uncork_flow::{ResumeUse, TransportFigures};
use uncork_units::{Rate, TimeDelta};

use crate::policy_choice::PolicyChoice;

/// The state of a TCP socket at one time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SocketSample {
    /// The kernel's socket cookie, unique until the next boot.
    pub cookie: u64,
    /// Local address and port.
    pub local: SocketAddr,
    /// Remote address and port.
    pub remote: SocketAddr,
    /// The controller; null in events of destroyed sockets.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub cc: Option<CcName>,
    /// Counters, as in all records.
    pub figures: TransportFigures,
    /// Bytes received in order.
    pub bytes_received: u64,
    /// Whether the latest delivery rate sample was application-limited.
    pub is_app_limited: bool,
    /// The pacing rate; null without pacing.
    #[cfg_attr(test, schemars(with = "Option<u64>"))]
    #[serde(rename = "pacing_bps", with = "maybe_bits_per_sec")]
    pub pacing_rate: Option<Rate>,
    /// The application's pacing limit (`SO_MAX_PACING_RATE`).
    #[cfg_attr(test, schemars(with = "Option<u64>"))]
    #[serde(rename = "pacing_cap_bps", with = "maybe_bits_per_sec")]
    pub pacing_cap: Option<Rate>,
    /// Maximum size of segments sent.
    pub mss_bytes: u32,
    /// Congestion window.
    pub cwnd_bytes: u64,
    /// Bytes sent, and neither acknowledged nor declared lost.
    pub in_flight_bytes: u64,
    /// The window that the receiver announces; absent before Linux 5.4, and in older sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_window_bytes: Option<u64>,
    /// Bytes written by the application, and not yet sent.
    pub unsent_bytes: u64,
    /// Whether the send buffer is full, so that the application blocks when it writes; false in events of destroyed sockets.
    pub is_send_buffer_full: bool,
    /// Packets delivered, including SYN and FIN; null before Linux 4.18.
    pub delivered_packets: Option<u32>,
    /// Time since data was last sent, in whole milliseconds.
    #[cfg_attr(test, schemars(with = "u64"))]
    #[serde(rename = "last_data_sent_ns", with = "nanos")]
    pub last_data_sent: TimeDelta,
    /// BBR's model, if the connection runs BBR.
    pub bbr: Option<BbrSample>,
    /// What became of Careful Resume; only in events of destroyed sockets that began with an observation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume: Option<ResumeSample>,
    /// Whether this host accepted it: a socket listens, or listened in this session, on its local port. Absent before the first
    /// pass, and in older sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_accepted: Option<bool>,
    /// What a policy of `uncork steer` gave it; absent of others, in events of destroyed sockets, and in older sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given: Option<PolicyChoice>,
}

/// Careful Resume of a connection that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ResumeSample {
    /// What became of an earlier connection's observation.
    pub outcome: ResumeUse,
    /// Its age when the connection began.
    #[cfg_attr(test, schemars(with = "u64"))]
    #[serde(rename = "age_ns", with = "nanos")]
    pub age: TimeDelta,
}

/// BBR's model of the path.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct BbrSample {
    /// 1, 2 or 3.
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub version: u8,
    /// The state.
    pub state: BbrState,
    /// Estimated bandwidth.
    #[cfg_attr(test, schemars(with = "Option<u64>"))]
    #[serde(rename = "bandwidth_bps", with = "maybe_bits_per_sec")]
    pub bandwidth: Option<Rate>,
    /// BBR's minimum round-trip time.
    #[cfg_attr(test, schemars(with = "Option<u64>"))]
    #[serde(rename = "min_rtt_ns", with = "maybe_nanos")]
    pub min_rtt: Option<TimeDelta>,
    /// The bounds of versions 2 and 3; absent of version 1, and in older sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounds: Option<BbrBounds>,
}

/// The bounds of BBRv2 and BBRv3.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct BbrBounds {
    /// The highest bandwidth measured.
    #[cfg_attr(test, schemars(with = "Option<u64>"))]
    #[serde(rename = "max_bandwidth_bps", with = "maybe_bits_per_sec")]
    pub max_bandwidth: Option<Rate>,
    /// The short-term bound of the bandwidth; null if unset.
    #[cfg_attr(test, schemars(with = "Option<u64>"))]
    #[serde(rename = "bandwidth_bps", with = "maybe_bits_per_sec")]
    pub bandwidth: Option<Rate>,
    /// The short-term bound of what is in flight; null if unset.
    pub inflight_packets: Option<u32>,
    /// The long-term bound of what is in flight; null if unset.
    pub max_inflight_packets: Option<u32>,
}

impl From<&Bbr2Info> for BbrBounds {
    fn from(info: &Bbr2Info) -> Self {
        Self {
            max_bandwidth: Some(info.bw_hi),
            bandwidth: Some(info.bw_lo).filter(|rate| *rate < Rate::MAX),
            inflight_packets: info.inflight_lo,
            max_inflight_packets: info.inflight_hi,
        }
    }
}

impl SocketSample {
    /// `None` for a socket without TCP state, such as one in TIME-WAIT.
    pub fn of(connection: &Connection) -> Option<Self> {
        let info = connection.info.as_ref()?;
        let mss = u64::from(info.snd_mss);
        let in_flight = (info.unacked + info.retrans).saturating_sub(info.sacked + info.lost);
        Some(Self {
            cookie: connection.cookie,
            local: connection.local,
            remote: connection.remote,
            cc: connection.cc,
            figures: info.into(),
            bytes_received: info.bytes_received.unwrap_or(0),
            is_app_limited: info.delivery_rate_app_limited,
            pacing_rate: limited(info, |info| info.pacing_rate),
            pacing_cap: limited(info, |info| info.max_pacing_rate),
            mss_bytes: info.snd_mss,
            cwnd_bytes: u64::from(info.snd_cwnd) * mss,
            in_flight_bytes: u64::from(in_flight) * mss,
            receive_window_bytes: info.snd_wnd.map(u64::from),
            unsent_bytes: info.notsent_bytes.unwrap_or(0).into(),
            is_send_buffer_full: connection.mem.is_some_and(|mem| mem.wmem_queued >= mem.sndbuf),
            delivered_packets: info.delivered,
            last_data_sent: info.last_data_sent,
            resume: info.resume.map(|mark| ResumeSample { outcome: mark.outcome, age: mark.age }),
            bbr: connection.bbr().map(|bbr| BbrSample {
                version: bbr.version(),
                state: bbr.state(),
                bandwidth: Some(bbr.bw),
                min_rtt: bbr.min_rtt,
                bounds: bbr.bbr2.as_ref().map(BbrBounds::from),
            }),
            is_accepted: None,
            given: None,
        })
    }

    /// The smallest known round-trip time of the path.
    pub fn min_rtt(&self) -> Option<TimeDelta> {
        let bbr = self.bbr.and_then(|bbr| bbr.min_rtt);
        self.figures.min_rtt.into_iter().chain(bbr).min()
    }
}

/// A rate, or `None` for the kernel's value for "no limit", which is the largest number.
fn limited(info: &TcpInfo, rate: fn(&TcpInfo) -> Option<Rate>) -> Option<Rate> {
    rate(info).filter(|rate| *rate < Rate::MAX)
}
