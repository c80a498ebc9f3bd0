//! BBRv2 as a profile of BBRv3: what the two versions do differently.
//!
//! "BBRv2" here means the version that was deployed and measured under that name: Linux's
//! `tcp_bbr2.c`, branch `v2alpha` of github.com/google/bbr. The table uses its function and
//! parameter names ("Linux v2"). Its draft, draft-cardwell-iccrg-bbr-congestion-control-02
//! ("draft-02"), is closer to BBRv3 in many rows. BBRv3 is draft-ietf-ccwg-bbr-06 ("draft-06");
//! "Linux v3" is `tcp_bbr.c`, branch `v3`.
//!
//! | | BBRv2 here (Linux v2) | draft-02 | BBRv3 here (draft-06) | Linux v3 |
//! |---|---|---|---|---|
//! | Pacing gain of Startup | 2.885, 2 / ln 2 (`bbr_high_gain`) | 2.77 (§4.6.1) | 2.77, 4 ln 2 (§5.6.1) | 2.77 |
//! | Window gain of Startup and Drain | 2.885 (`bbr_startup_cwnd_gain`) | 2 (§4.6.1) | 2 (§5.6.1) | 2 |
//! | Pacing gain of Drain | 1 / 2.885 (`bbr_drain_gain`) | 0.5 (§4.6.1) | 0.5 (§5.6.1) | 1 / 2.885 |
//! | Pacing gain of `ProbeBW_DOWN` | 0.75 (`bbr_pacing_gain`) | 0.9 (§4.6.1) | 0.9 (§5.6.1) | 0.91 |
//! | Window gain of `ProbeBW_UP` | 2 (`bbr_cwnd_gain`) | 2 (§4.6.1) | 2.25 (§5.6.1) | 2.25 |
//! | Startup's estimator of a full pipe looks at | max_bw (`bbr_check_full_bw_reached`) | max_bw (§4.3.1.2) | the round's rate sample (§5.3.1.2) | every rate sample |
//! | Losses in a round that end Startup | 8 (`bbr_full_loss_cnt`) | 3 ranges (§4.3.1.3) | 6 ranges (§5.3.1.3) | 6 |
//! | inflight_longterm after they have | the BDP (`bbr2_handle_queue_too_high_in_startup`) | not set (§4.3.1.3) | the BDP, or what the last round delivered if that is more (§5.3.1.3) | as draft-06 |
//! | Drain ends | when inflight is down to the BDP (`bbr_check_drain`) | so too (§4.3.2) | so too, or after three rounds (§5.3.2) | as v2 |
//! | `ProbeBW_UP` ends, without loss | when inflight is 1.25 BDP, after at least min_rtt (`bbr2_update_cycle_phase`) | so too (§4.3.3.4) | when the rate no longer grows and inflight_longterm is not what holds it (§5.3.3.7) | as draft-06 |
//! | An undo resumes the state that loss ended | no (`bbr2_undo_cwnd`) | no (§4.6.4.4) | yes (§5.5.11) | no |
//! | A loss that a tail-loss probe repaired is a sign of congestion | no (no such event) | no | yes (`DEVIATIONS.md`, k) | yes |
//!
//! Google describes BBRv3 as BBRv2 with fixes and tuning. They change how flows share bandwidth, so
//! results for one version do not apply to the other (IETF 117, CCWG). The fixes are the
//! `ProbeBW_DOWN` and `ProbeBW_UP` rows.
//!
//! The table omits what both versions share, although draft-02 lacks some of it: Linux v2 has the
//! precautionary probe, and restores bounds after spurious loss. How both
//! versions respond to ECN marks is in `ecn.rs`. The fixes of
//! `DEVIATIONS.md` apply to both versions, except for the last row.
//!
//! These parts of Linux v2 are not implemented, because draft-02 differs, Linux v3 does the same as
//! v2, or the host decides: lost ranges are counted, not ACKs that report loss; an RTT equal to the
//! minimum does not postpone ProbeRTT (draft-02 §4.3.4.4; otherwise a path without noise would
//! never enter ProbeRTT); the offload budget is one quantum but for hosts with segmentation offload; entering Drain keeps the latest
//! signals; entering `ProbeBW_CRUISE` or a timeout keeps inflight_shortterm.
//!
//! A later revision, in the L4S kernel (github.com/L4STeam/linux, branch `testing`, last versions), paces at
//! 0.91 in `ProbeBW_DOWN` (`bbr2_pacing_gain`) and has a window gain of 2.25 in `ProbeBW_UP`
//! (`bbr_bw_probe_cwnd_gain`), as version 3. `bbr2` follows `v2alpha`, which has neither. No other difference
//! was found that acts after Startup without ECN marks.
//!
//! The two gains decide the shares in a queue. Of 100 Mbit/s at 10 ms in 4 BDP next to `bbr1`, both from the start, `bbr2`
//! has 0.16 as it is and 0.35 with them, that kernel's 0.46 ± 0.03. At 0.75 the flow with less stays in `ProbeBW_DOWN`
//! until its next probe, because its inflight stays above its BDP while others hold the queue, and each cycle lowers
//! its max_bw. Tried without effect on the rest: an RTT equal to the minimum postpones ProbeRTT; Startup judged by the rate
//! sample; a round trip of 11 ms; jitter of 0.3 and 1 ms; ACKs in groups of 2 ms; hosts that take time; segmentation
//! offload. Not tried: the burst about to leave, which `bbr_packets_in_net_at_edt` adds while probing (it shortens probes),
//! and advancing the max_bw filter only after rounds that are not application-limited, as Linux does (`DEVIATIONS.md`, n).

use uncork_units::Ratio;

use super::params::{
    DEFAULT_CWND_GAIN, DOWN_PACING_GAIN, DRAIN_PACING_GAIN, STARTUP_FULL_LOSS_COUNT,
    STARTUP_PACING_GAIN, UP_CWND_GAIN,
};

/// Linux's `bbr_high_gain`: 2 / ln 2, as in BBRv1.
const V2_STARTUP_GAIN: Ratio = Ratio::new(2_885, 1_000);

/// The version of the algorithm. Each method is a row of the table above. Rows without a method are
/// implemented in the function they affect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Profile {
    /// BBRv2.
    V2,
    /// BBRv3.
    V3,
}

impl Profile {
    pub(super) const fn startup_pacing_gain(self) -> Ratio {
        match self {
            Self::V2 => V2_STARTUP_GAIN,
            Self::V3 => STARTUP_PACING_GAIN,
        }
    }

    /// Window gain of Startup and Drain.
    pub(super) const fn startup_cwnd_gain(self) -> Ratio {
        match self {
            Self::V2 => V2_STARTUP_GAIN,
            Self::V3 => DEFAULT_CWND_GAIN,
        }
    }

    pub(super) const fn drain_pacing_gain(self) -> Ratio {
        match self {
            Self::V2 => Ratio::new(1_000, 2_885),
            Self::V3 => DRAIN_PACING_GAIN,
        }
    }

    pub(super) const fn down_pacing_gain(self) -> Ratio {
        match self {
            Self::V2 => Ratio::new(3, 4),
            Self::V3 => DOWN_PACING_GAIN,
        }
    }

    pub(super) const fn up_cwnd_gain(self) -> Ratio {
        match self {
            Self::V2 => DEFAULT_CWND_GAIN,
            Self::V3 => UP_CWND_GAIN,
        }
    }

    /// BBRStartupFullLossCnt: lost ranges in a round that end Startup.
    pub(super) const fn startup_full_loss_count(self) -> u8 {
        match self {
            Self::V2 => 8,
            Self::V3 => STARTUP_FULL_LOSS_COUNT,
        }
    }

    /// Whether Drain ends after a fixed number of rounds regardless of inflight.
    pub(super) const fn limits_drain(self) -> bool {
        matches!(self, Self::V3)
    }

    /// Whether an undo resumes the state before the loss.
    pub(super) const fn resumes_state(self) -> bool {
        matches!(self, Self::V3)
    }
}
