//! State of a connection's congestion control (`include/uapi/linux/inet_diag.h`).

use serde::{Deserialize, Serialize};
use uncork_units::{Rate, Ratio, TimeDelta};

use crate::fields::Fields;
use crate::tcp_info::micros_but;

/// State of the connection's congestion control, if its algorithm reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CcInfo {
    /// Any version of BBR.
    Bbr(BbrInfo),
    /// DCTCP.
    Dctcp(DctcpInfo),
    /// Vegas, and others with the same structure (Westwood, Veno, Illinois).
    Vegas(VegasInfo),
}

/// BBR's model of the path (`struct tcp_bbr_info`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BbrInfo {
    /// Estimated bottleneck bandwidth, in payload.
    pub bw: Rate,
    /// Minimum round-trip time of the last 10 s; `None` before the first sample.
    pub min_rtt: Option<TimeDelta>,
    /// Pacing rate divided by the bandwidth, in 1/256.
    pub pacing_gain: Ratio,
    /// Window divided by the bandwidth-delay product, in 1/256.
    pub cwnd_gain: Ratio,
    /// Extra fields of versions 2 and 3; `None` for mainline Linux (version 1).
    pub bbr2: Option<Bbr2Info>,
}

/// A state of BBR, as its specification calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub enum BbrState {
    /// The bandwidth is still growing.
    Startup,
    /// Draining the queue that start-up built.
    Drain,
    /// Probing bandwidth; version 1 does not report more.
    #[serde(rename = "ProbeBW")]
    ProbeBw,
    /// Probing for more bandwidth.
    #[serde(rename = "ProbeBW_UP")]
    ProbeBwUp,
    /// Draining the queue that probing built.
    #[serde(rename = "ProbeBW_DOWN")]
    ProbeBwDown,
    /// At the estimated bandwidth.
    #[serde(rename = "ProbeBW_CRUISE")]
    ProbeBwCruise,
    /// Filling the pipe before probing.
    #[serde(rename = "ProbeBW_REFILL")]
    ProbeBwRefill,
    /// Probing the minimum round-trip time.
    #[serde(rename = "ProbeRTT")]
    ProbeRtt,
}

/// Extra fields of BBRv2 and BBRv3, as in `github.com/google/bbr`, branch `v3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bbr2Info {
    /// 2 or 3.
    pub version: u8,
    /// The state (`enum bbr_mode`): start-up 0, drain 1, probing bandwidth 2, probing RTT 3.
    pub mode: u8,
    /// The phase (`enum tcp_bbr_phase`): invalid 0, start-up 1, drain 2, probing RTT 3, probing
    /// bandwidth up 4, down 5, cruise 6, refill 7.
    pub phase: u8,
    /// Long-term bound: the highest bandwidth measured.
    pub bw_hi: Rate,
    /// Short-term bound of the bandwidth; [`Rate::MAX`] if unset.
    pub bw_lo: Rate,
    /// Short-term bound of packets in flight; `None` if unset.
    pub inflight_lo: Option<u32>,
    /// Long-term bound of packets in flight; `None` if unset.
    pub inflight_hi: Option<u32>,
    /// Allowance for aggregated ACKs, in packets.
    pub extra_acked: u32,
}

/// DCTCP's state (`struct tcp_dctcp_info`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DctcpInfo {
    /// Whether the connection negotiated ECN; without it DCTCP acts as Reno.
    pub enabled: bool,
    /// Whether the last segment received was CE-marked.
    pub ce_state: bool,
    /// Smoothed share of marked bytes (RFC 8257 §3.3), in 1/1024.
    pub alpha: Ratio,
    /// Bytes acknowledged with ECN-Echo in this window.
    pub acked_ecn: u32,
    /// Bytes acknowledged in this window.
    pub acked: u32,
}

/// Vegas's state (`struct tcpvegas_info`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VegasInfo {
    /// Whether Vegas is active.
    pub enabled: bool,
    /// Samples of this round.
    pub rtt_count: u32,
    /// Vegas: minimum round-trip time of the connection; others: smoothed round-trip time. `None` before
    /// the first sample.
    pub rtt: Option<TimeDelta>,
    /// Vegas: minimum round-trip time of the last round; others: of the connection. `None` before the
    /// first sample.
    pub min_rtt: Option<TimeDelta>,
}

/// Vegas's value for "no sample yet", in microseconds.
const VEGAS_NONE: u32 = 0x7fff_ffff;

impl BbrInfo {
    /// `None` for fewer than the 20 bytes of version 1.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let raw = Fields(bytes);
        let gain = |at| raw.u32(at).map(|gain| Ratio::new(gain, 256));
        Some(Self {
            bw: Rate::from_bytes_per_sec(raw.halves(0)?),
            min_rtt: micros_but(u32::MAX, raw.u32(8)?),
            pacing_gain: gain(12)?,
            cwnd_gain: gain(16)?,
            bbr2: Bbr2Info::parse(raw),
        })
    }
}

impl BbrInfo {
    /// The state. Versions 2 and 3 report it. For version 1 it follows from the gains
    /// (`bbr_update_gains` in `tcp_bbr.c`): 2.89 for both in start-up, 0.35 and 2.89 in drain, 1
    /// and 1 while probing the round-trip time. Before the first acknowledgement both are 0.
    pub fn state(&self) -> BbrState {
        if let Some(bbr2) = &self.bbr2 {
            return bbr2.state();
        }
        let (pacing, cwnd) = (self.pacing_gain.as_f64(), self.cwnd_gain.as_f64());
        match (pacing > 2.5, cwnd > 2.5, cwnd > 1.5) {
            (true, ..) => BbrState::Startup,
            _ if pacing == 0.0 && cwnd == 0.0 => BbrState::Startup,
            (false, true, _) => BbrState::Drain,
            (false, false, true) => BbrState::ProbeBw,
            (false, false, false) => BbrState::ProbeRtt,
        }
    }

    /// 1, 2 or 3.
    pub fn version(&self) -> u8 {
        self.bbr2.map_or(1, |bbr2| bbr2.version)
    }
}

impl BbrState {
    /// Its name in time series.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Startup => "Startup",
            Self::Drain => "Drain",
            Self::ProbeBw => "ProbeBW",
            Self::ProbeBwUp => "ProbeBW_UP",
            Self::ProbeBwDown => "ProbeBW_DOWN",
            Self::ProbeBwCruise => "ProbeBW_CRUISE",
            Self::ProbeBwRefill => "ProbeBW_REFILL",
            Self::ProbeRtt => "ProbeRTT",
        }
    }
}

impl Bbr2Info {
    /// By `phase` (`enum tcp_bbr_phase`), which is finer than `mode`.
    fn state(&self) -> BbrState {
        match self.phase {
            1 => BbrState::Startup,
            2 => BbrState::Drain,
            3 => BbrState::ProbeRtt,
            4 => BbrState::ProbeBwUp,
            5 => BbrState::ProbeBwDown,
            6 => BbrState::ProbeBwCruise,
            7 => BbrState::ProbeBwRefill,
            _ => BbrState::ProbeBw,
        }
    }

    fn parse(raw: Fields<'_>) -> Option<Self> {
        Some(Self {
            bw_hi: Rate::from_bytes_per_sec(raw.halves(20)?),
            bw_lo: Rate::from_bytes_per_sec(raw.halves(28)?),
            mode: raw.u8(36)?,
            phase: raw.u8(37)?,
            version: raw.u8(39)?,
            inflight_lo: Some(raw.u32(40)?).filter(|bound| *bound != u32::MAX),
            inflight_hi: Some(raw.u32(44)?).filter(|bound| *bound != u32::MAX),
            extra_acked: raw.u32(48)?,
        })
    }
}

impl DctcpInfo {
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let raw = Fields(bytes);
        Some(Self {
            enabled: raw.u16(0)? != 0,
            ce_state: raw.u16(2)? != 0,
            alpha: Ratio::new(raw.u32(4)?, 1024),
            acked_ecn: raw.u32(8)?,
            acked: raw.u32(12)?,
        })
    }
}

impl VegasInfo {
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let raw = Fields(bytes);
        Some(Self {
            enabled: raw.u32(0)? != 0,
            rtt_count: raw.u32(4)?,
            rtt: micros_but(VEGAS_NONE, raw.u32(8)?),
            min_rtt: micros_but(VEGAS_NONE, raw.u32(12)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn bbr_1_has_20_bytes() {
        let bytes = words(&[1_000, 1, 20_000, 739, 512]);
        let info = BbrInfo::parse(&bytes).expect("BBR");
        assert_eq!(info.bw, Rate::from_bytes_per_sec((1 << 32) + 1_000));
        assert_eq!(info.min_rtt, Some(TimeDelta::from_millis(20)));
        assert_eq!(info.pacing_gain, Ratio::new(739, 256));
        assert_eq!(info.cwnd_gain, Ratio::new(512, 256));
        assert_eq!(info.bbr2, None);
        assert_eq!(BbrInfo::parse(&bytes[..19]), None);
        let unmeasured = BbrInfo::parse(&words(&[0, 0, u32::MAX, 739, 739])).expect("BBR");
        assert_eq!(unmeasured.min_rtt, None);
    }

    #[test]
    fn the_gains_of_version_1_show_its_state() {
        let state = |pacing, cwnd| {
            BbrInfo::parse(&words(&[0, 0, 0, pacing, cwnd])).map(|info| info.state())
        };
        assert_eq!(state(739, 739), Some(BbrState::Startup));
        assert_eq!(state(88, 739), Some(BbrState::Drain));
        for pacing in [320, 192, 256] {
            assert_eq!(state(pacing, 512), Some(BbrState::ProbeBw));
        }
        assert_eq!(state(256, 256), Some(BbrState::ProbeRtt));
    }

    #[test]
    fn bbr_3_appends_32_bytes() {
        let mut bytes = words(&[1, 0, 2, 3, 4, 5, 0, u32::MAX, u32::MAX]);
        bytes.extend([2, 6, 0, 3]);
        bytes.extend(words(&[7, u32::MAX, 9, 10]));
        let info = BbrInfo::parse(&bytes).and_then(|info| info.bbr2).expect("BBRv3");
        let expected = Bbr2Info {
            version: 3,
            mode: 2,
            phase: 6,
            bw_hi: Rate::from_bytes_per_sec(5),
            bw_lo: Rate::MAX,
            inflight_lo: Some(7),
            inflight_hi: None,
            extra_acked: 9,
        };
        assert_eq!(info, expected);
        assert_eq!(info.state(), BbrState::ProbeBwCruise);
        assert_eq!(BbrInfo::parse(&bytes[..51]).expect("BBR").bbr2, None);
    }

    #[test]
    fn vegas_and_dctcp() {
        let bytes = words(&[1, 3, 40, VEGAS_NONE]);
        let vegas = VegasInfo::parse(&bytes).expect("Vegas");
        assert_eq!((vegas.enabled, vegas.rtt_count), (true, 3));
        assert_eq!((vegas.rtt, vegas.min_rtt), (Some(TimeDelta::from_micros(40)), None));
        assert_eq!(VegasInfo::parse(&bytes[..15]), None);

        let mut bytes = [1_u16.to_ne_bytes(), 0_u16.to_ne_bytes()].concat();
        bytes.extend(words(&[512, 30, 60]));
        let dctcp = DctcpInfo::parse(&bytes).expect("DCTCP");
        assert_eq!((dctcp.enabled, dctcp.ce_state), (true, false));
        assert_eq!(dctcp.alpha, Ratio::new(512, 1024));
        assert_eq!((dctcp.acked_ecn, dctcp.acked), (30, 60));
        assert_eq!(DctcpInfo::parse(&bytes[..15]), None);
    }
}
