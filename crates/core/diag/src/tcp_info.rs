//! TCP's state of a connection (`struct tcp_info`, `include/uapi/linux/tcp.h`).

use uncork_flow::ResumeUse;
use uncork_units::{Rate, TimeDelta};

use crate::fields::Fields;
use crate::state::{CaState, TcpState};

/// TCP's state of a connection. Packets are segments of at most `snd_mss` bytes; bytes are payload. Fields
/// in an `Option` were added after Linux 4.0 and are `None` on older kernels.
///
/// For a listening socket only `unacked` and `sacked` are meaningful: the connections that wait to be
/// accepted, and the backlog limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// The connection's state.
    pub state: TcpState,
    /// The state of loss recovery.
    pub ca_state: CaState,
    /// Consecutive timeouts of the oldest segment.
    pub retransmits: u8,
    /// Unanswered window probes.
    pub probes: u8,
    /// Number of times the timeout was doubled.
    pub backoff: u8,
    /// Negotiated options.
    pub options: TcpOptions,
    /// Window scale of the peer's advertised window.
    pub snd_wscale: u8,
    /// Window scale of the advertised window.
    pub rcv_wscale: u8,
    /// Whether `delivery_rate` was application-limited. Always false before Linux 4.9.
    pub delivery_rate_app_limited: bool,
    /// The retransmission timeout.
    pub rto: TimeDelta,
    /// The delayed-ACK timeout.
    pub ato: TimeDelta,
    /// Maximum size of sent segments, in bytes.
    pub snd_mss: u32,
    /// Estimated payload size of received segments, in bytes.
    pub rcv_mss: u32,
    /// Packets sent and not yet acknowledged, including selectively acknowledged ones.
    pub unacked: u32,
    /// Of these, packets selectively acknowledged.
    pub sacked: u32,
    /// Of these, packets considered lost.
    pub lost: u32,
    /// Of these, packets retransmitted.
    pub retrans: u32,
    /// Time since data was last sent, in whole milliseconds.
    pub last_data_sent: TimeDelta,
    /// Time since data was last received, in whole milliseconds.
    pub last_data_recv: TimeDelta,
    /// Time since an ACK was last received, in whole milliseconds.
    pub last_ack_recv: TimeDelta,
    /// Path MTU in bytes.
    pub pmtu: u32,
    /// Upper bound of the advertised window, in bytes.
    pub rcv_ssthresh: u32,
    /// Smoothed round-trip time (RFC 6298); zero before the first sample.
    pub rtt: TimeDelta,
    /// The mean deviation of the round-trip time.
    pub rttvar: TimeDelta,
    /// Slow-start threshold in packets; `None` while it is infinite.
    pub snd_ssthresh: Option<u32>,
    /// What an ended connection of `uncork kernel load --resume` says about Careful Resume, in the place of the threshold.
    pub resume: Option<ResumeMark>,
    /// Congestion window in packets.
    pub snd_cwnd: u32,
    /// Advertised maximum segment size, in bytes.
    pub advmss: u32,
    /// Estimated reordering degree, in packets.
    pub reordering: u32,
    /// The receiver's estimate of the round-trip time; zero before the first sample.
    pub rcv_rtt: TimeDelta,
    /// Bytes that the application reads per round trip.
    pub rcv_space: u32,
    /// Packets retransmitted over the connection's life.
    pub total_retrans: u32,
    /// The pacing rate, whether set by the congestion control, the qdisc `fq` or the application;
    /// [`Rate::MAX`] without pacing.
    pub pacing_rate: Option<Rate>,
    /// The application's limit of that rate (`SO_MAX_PACING_RATE`); [`Rate::MAX`] without one.
    pub max_pacing_rate: Option<Rate>,
    /// Bytes acknowledged. A FIN and the SYN of `connect` count as one byte each, the SYN of an accepted
    /// connection does not count.
    pub bytes_acked: Option<u64>,
    /// Bytes received in order; the peer's FIN counts as one.
    pub bytes_received: Option<u64>,
    /// Segments sent, including pure ACKs and retransmissions.
    pub segs_out: Option<u32>,
    /// Segments received, including pure ACKs.
    pub segs_in: Option<u32>,
    /// Bytes written by the application and not yet sent.
    pub notsent_bytes: Option<u32>,
    /// Minimum round-trip time of the last `tcp_min_rtt_wlen` (300 s); `None` without a sample.
    pub min_rtt: Option<TimeDelta>,
    /// Data segments received.
    pub data_segs_in: Option<u32>,
    /// Data segments sent, including retransmissions.
    pub data_segs_out: Option<u32>,
    /// Latest sample of the delivery rate; zero before the first one.
    pub delivery_rate: Option<Rate>,
    /// Time with data unacknowledged or to be sent, in the resolution of a kernel tick.
    pub busy_time: Option<TimeDelta>,
    /// Of that, time limited by the peer's window.
    pub rwnd_limited: Option<TimeDelta>,
    /// Of that, time limited by the send buffer.
    pub sndbuf_limited: Option<TimeDelta>,
    /// Packets delivered, including out-of-order ones.
    pub delivered: Option<u32>,
    /// Of these, packets CE-marked (ECN).
    pub delivered_ce: Option<u32>,
    /// Bytes sent, including retransmissions.
    pub bytes_sent: Option<u64>,
    /// Of these, bytes retransmitted.
    pub bytes_retrans: Option<u64>,
    /// DSACKs received: the peer got a packet twice (RFC 2883).
    pub dsack_dups: Option<u32>,
    /// Reordering events.
    pub reord_seen: Option<u32>,
    /// Packets received out of order.
    pub rcv_ooopack: Option<u32>,
    /// The peer's advertised window in bytes.
    pub snd_wnd: Option<u32>,
    /// The advertised window in bytes.
    pub rcv_wnd: Option<u32>,
    /// Number of times the connection changed its path through the network (PLB and timeouts).
    pub rehash: Option<u32>,
    /// Retransmission timeouts, including those of the handshake.
    pub total_rto: Option<u16>,
    /// Recoveries started by timeouts; consecutive timeouts count once.
    pub total_rto_recoveries: Option<u16>,
    /// Total duration of those recoveries, in whole milliseconds.
    pub total_rto_time: Option<TimeDelta>,
    /// Counters of accurate ECN.
    pub acc_ecn: Option<AccEcnInfo>,
}

/// Negotiated options (`TCPI_OPT_*`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpOptions(u8);

/// Counters of accurate ECN (RFC 9768); all zero if it was not negotiated.
/// Byte counters wrap at 2^32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccEcnInfo {
    /// Segments received with CE.
    pub received_ce: u32,
    /// Bytes delivered as ECT(1).
    pub delivered_e1_bytes: u32,
    /// Bytes delivered as ECT(0).
    pub delivered_e0_bytes: u32,
    /// Bytes delivered with CE.
    pub delivered_ce_bytes: u32,
    /// Bytes received as ECT(1).
    pub received_e1_bytes: u32,
    /// Bytes received as ECT(0).
    pub received_e0_bytes: u32,
    /// Bytes received with CE.
    pub received_ce_bytes: u32,
}

/// What became of the observation with which a connection began: `resume_mark` in crates/transport/kernel/bpf/shim.bpf.c.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResumeMark {
    /// What became of it.
    pub outcome: ResumeUse,
    /// Its age when the connection began, in whole seconds.
    pub age: TimeDelta,
}

impl ResumeMark {
    /// Above [`INFINITE_SSTHRESH`], which no other controller sets.
    const IS_RESUMED: u32 = 1 << 31;

    fn parse(threshold: u32) -> Option<Self> {
        let outcome = match threshold.checked_sub(Self::IS_RESUMED)? >> 16 {
            1 => ResumeUse::Unused,
            2 => ResumeUse::Used,
            3 => ResumeUse::Retreated,
            _ => return None,
        };
        Some(Self { outcome, age: TimeDelta::from_secs(u64::from(threshold & 0xffff)) })
    }
}

/// `TCP_INFINITE_SSTHRESH` (`include/net/tcp.h`).
const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

impl TcpInfo {
    /// Parses the structure from sock_diag or the socket option `TCP_INFO`, as far as present. `None` for
    /// less than 104 bytes, which every Linux since 2.6.8 sends.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        // The offsets never change: the structure only grows at its end.
        let raw = Fields(bytes);
        // Bit-fields: on a little-endian machine, the first one is in the low bits.
        let scales = raw.u8(6)?;
        let flags = raw.u8(7)?;
        let little = cfg!(target_endian = "little");
        Some(Self {
            state: TcpState::from_number(raw.u8(0)?),
            ca_state: CaState::from_number(raw.u8(1)?),
            retransmits: raw.u8(2)?,
            probes: raw.u8(3)?,
            backoff: raw.u8(4)?,
            options: TcpOptions(raw.u8(5)?),
            snd_wscale: if little { scales & 0xf } else { scales >> 4 },
            rcv_wscale: if little { scales >> 4 } else { scales & 0xf },
            delivery_rate_app_limited: flags & if little { 1 } else { 0x80 } != 0,
            rto: micros(raw.u32(8)?),
            ato: micros(raw.u32(12)?),
            snd_mss: raw.u32(16)?,
            rcv_mss: raw.u32(20)?,
            unacked: raw.u32(24)?,
            sacked: raw.u32(28)?,
            lost: raw.u32(32)?,
            retrans: raw.u32(36)?,
            last_data_sent: millis(raw.u32(44)?),
            last_data_recv: millis(raw.u32(52)?),
            last_ack_recv: millis(raw.u32(56)?),
            pmtu: raw.u32(60)?,
            rcv_ssthresh: raw.u32(64)?,
            rtt: micros(raw.u32(68)?),
            rttvar: micros(raw.u32(72)?),
            snd_ssthresh: Some(raw.u32(76)?).filter(|packets| *packets < INFINITE_SSTHRESH),
            resume: ResumeMark::parse(raw.u32(76)?),
            snd_cwnd: raw.u32(80)?,
            advmss: raw.u32(84)?,
            reordering: raw.u32(88)?,
            rcv_rtt: micros(raw.u32(92)?),
            rcv_space: raw.u32(96)?,
            total_retrans: raw.u32(100)?,
            ..Self::later_fields(raw)
        })
    }

    /// The fields after byte 104, as far as present.
    fn later_fields(raw: Fields<'_>) -> Self {
        let rate = |at| raw.u64(at).map(Rate::from_bytes_per_sec);
        let span = |at| raw.u64(at).map(TimeDelta::from_micros);
        Self {
            pacing_rate: rate(104),
            max_pacing_rate: rate(112),
            bytes_acked: raw.u64(120),
            bytes_received: raw.u64(128),
            segs_out: raw.u32(136),
            segs_in: raw.u32(140),
            notsent_bytes: raw.u32(144),
            min_rtt: raw.u32(148).and_then(|rtt| micros_but(u32::MAX, rtt)),
            data_segs_in: raw.u32(152),
            data_segs_out: raw.u32(156),
            delivery_rate: rate(160),
            busy_time: span(168),
            rwnd_limited: span(176),
            sndbuf_limited: span(184),
            delivered: raw.u32(192),
            delivered_ce: raw.u32(196),
            bytes_sent: raw.u64(200),
            bytes_retrans: raw.u64(208),
            dsack_dups: raw.u32(216),
            reord_seen: raw.u32(220),
            rcv_ooopack: raw.u32(224),
            snd_wnd: raw.u32(228),
            rcv_wnd: raw.u32(232),
            rehash: raw.u32(236),
            total_rto: raw.u16(240),
            total_rto_recoveries: raw.u16(242),
            total_rto_time: raw.u32(244).map(millis),
            acc_ecn: AccEcnInfo::parse(raw),
            ..Self::default()
        }
    }
}

impl TcpOptions {
    /// Timestamps (RFC 7323).
    pub const fn timestamps(self) -> bool {
        self.0 & 1 != 0
    }

    /// Selective acknowledgements (RFC 2018).
    pub const fn sack(self) -> bool {
        self.0 & 2 != 0
    }

    /// Window scaling (RFC 7323).
    pub const fn window_scale(self) -> bool {
        self.0 & 4 != 0
    }

    /// ECN (RFC 3168, RFC 9768).
    pub const fn ecn(self) -> bool {
        self.0 & 8 != 0
    }

    /// An ECN-capable packet was received.
    pub const fn ecn_seen(self) -> bool {
        self.0 & 16 != 0
    }

    /// Data in the SYN was acknowledged (RFC 7413).
    pub const fn syn_data(self) -> bool {
        self.0 & 32 != 0
    }
}

impl AccEcnInfo {
    fn parse(raw: Fields<'_>) -> Option<Self> {
        Some(Self {
            received_ce: raw.u32(248)?,
            delivered_e1_bytes: raw.u32(252)?,
            delivered_e0_bytes: raw.u32(256)?,
            delivered_ce_bytes: raw.u32(260)?,
            received_e1_bytes: raw.u32(264)?,
            received_e0_bytes: raw.u32(268)?,
            received_ce_bytes: raw.u32(272)?,
        })
    }
}

fn micros(n: u32) -> TimeDelta {
    TimeDelta::from_micros(u64::from(n))
}

fn millis(n: u32) -> TimeDelta {
    TimeDelta::from_millis(u64::from(n))
}

/// `n` microseconds, or `None` if `n` is the kernel's value `none`.
pub(crate) fn micros_but(none: u32, n: u32) -> Option<TimeDelta> {
    (n != none).then(|| micros(n))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A structure: byte n has the value n, so each field shows its offset.
    fn counted(length: usize) -> Vec<u8> {
        (0..length).map(|n| n as u8).collect()
    }

    fn word(at: u8) -> u32 {
        u32::from_ne_bytes([at, at + 1, at + 2, at + 3])
    }

    /// Lengths of Linux 2.6.8, 4.4, 5.4 and 6.18, and a future one.
    #[test]
    fn older_structures_have_fewer_fields_and_longer_ones_are_cut() {
        let at = |length: usize| TcpInfo::parse(&counted(length));
        assert_eq!(at(0), None);
        assert_eq!(at(103), None);
        let oldest = at(104).expect("the base");
        assert_eq!(oldest.total_retrans, word(100));
        assert_eq!((oldest.pacing_rate, oldest.bytes_acked, oldest.acc_ecn), (None, None, None));

        let linux_4_4 = at(144).expect("a structure");
        assert_eq!(linux_4_4.segs_in, Some(word(140)));
        assert_eq!((linux_4_4.notsent_bytes, linux_4_4.min_rtt), (None, None));
        let linux_5_4 = at(232).expect("a structure");
        assert_eq!(linux_5_4.snd_wnd, Some(word(228)));
        assert_eq!((linux_5_4.rcv_wnd, linux_5_4.total_rto), (None, None));
        assert_eq!(at(275).expect("a structure").acc_ecn, None);
        let linux_6_18 = at(280).expect("a structure");
        assert!(linux_6_18.acc_ecn.is_some());
        let mut longer = counted(280);
        longer.extend([0xff; 200]);
        assert_eq!(TcpInfo::parse(&longer), Some(linux_6_18));
    }

    #[test]
    fn a_field_cut_in_two_is_absent() {
        assert_eq!(TcpInfo::parse(&counted(111)).expect("the base").pacing_rate, None);
        let whole = TcpInfo::parse(&counted(112)).expect("the base").pacing_rate;
        let number = u64::from_ne_bytes([104, 105, 106, 107, 108, 109, 110, 111]);
        assert_eq!(whole, Some(Rate::from_bytes_per_sec(number)));
    }

    #[test]
    fn threshold_above_infinity_is_the_mark_of_careful_resume() {
        let age = TimeDelta::from_secs(3600);
        for (threshold, outcome) in [
            (INFINITE_SSTHRESH, None),
            (0x8000_0000, None),
            (0x8001_0e10, Some(ResumeUse::Unused)),
            (0x8002_0e10, Some(ResumeUse::Used)),
            (0x8003_0e10, Some(ResumeUse::Retreated)),
            (0x8004_0e10, None),
            (u32::MAX, None),
        ] {
            let mut bytes = vec![0; 280];
            bytes[76..80].copy_from_slice(&threshold.to_ne_bytes());
            let info = TcpInfo::parse(&bytes).expect("a structure");
            let expected = outcome.map(|outcome| ResumeMark { outcome, age });
            assert_eq!((info.snd_ssthresh, info.resume), (None, expected), "{threshold:x}");
        }
    }

    #[test]
    fn sentinel_values_become_none() {
        let mut bytes = vec![0; 280];
        bytes[76..80].copy_from_slice(&INFINITE_SSTHRESH.to_ne_bytes());
        bytes[148..152].copy_from_slice(&u32::MAX.to_ne_bytes());
        let info = TcpInfo::parse(&bytes).expect("a structure");
        assert_eq!((info.snd_ssthresh, info.min_rtt), (None, None));
        bytes[76..80].copy_from_slice(&(INFINITE_SSTHRESH - 1).to_ne_bytes());
        bytes[148..152].copy_from_slice(&7_u32.to_ne_bytes());
        let info = TcpInfo::parse(&bytes).expect("a structure");
        assert_eq!((info.snd_ssthresh, info.resume), (Some(INFINITE_SSTHRESH - 1), None));
        assert_eq!(info.min_rtt, Some(TimeDelta::from_micros(7)));
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn bits_are_where_little_endian_compilers_put_them() {
        let mut bytes = vec![0; 104];
        (bytes[5], bytes[6], bytes[7]) = (0b1010, 0xa7, 0b0001);
        let info = TcpInfo::parse(&bytes).expect("a structure");
        assert_eq!((info.snd_wscale, info.rcv_wscale), (7, 10));
        assert!(info.delivery_rate_app_limited);
        assert!(info.options.sack() && info.options.ecn());
        assert!(!info.options.timestamps() && !info.options.window_scale());
        // tcpi_fastopen_client_fail is in the bits above.
        bytes[7] = 0b0110;
        assert!(!TcpInfo::parse(&bytes).expect("a structure").delivery_rate_app_limited);
    }
}
