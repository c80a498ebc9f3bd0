//! The response to ECN marks of a shallow threshold, as in DCTCP and L4S (RFC 8257, RFC 9331): in
//! proportion to the share of marked packets.
//!
//! The draft leaves ECN to future work (§3.7) and only asks that marks count as congestion. A sender of
//! ECT(1) says that it answers so (`Settings::scalable_marks`); otherwise a mark counts as a loss
//! (`loss.rs`), as it must behind a queue that marks instead of dropping. The rules here are those of Linux, by facts:
//! `tcp_bbr2.c` of branch `v2alpha` and `tcp_bbr.c` of branch `v3` of github.com/google/bbr. Linux
//! applies them where the administrator says so (`ecn_enable`, or `ecn_low` on the route) and up to a
//! min_rtt of 5 ms, a limit that version 2's README lifts for tests (`ecn_max_rtt_us`). Here the host
//! says so, at any RTT: Linux ignores marks beyond the limit, which §3.7 forbids.
//!
//! | | Linux v2 | Linux v3 |
//! |---|---|---|
//! | alpha, the share of marked packets, EWMA with a gain of 1/16 per round, initially 1 | yes | yes |
//! | Startup ends after two rounds with half of the packets marked (`bbr_full_ecn_cnt`) | yes | yes |
//! | a probe ends when half of a round trip's packets are marked (`bbr_ecn_thresh`) | yes | yes |
//! | a round with marks cuts inflight_shortterm by alpha / 3 (`bbr_ecn_factor`) | yes | yes |
//! | and bw_shortterm too (`bbr_ecn_bw_lo`) | yes | no |
//! | a probe that only saw too many marks also bounds the bandwidth (`bbr_ecn_bw_hi`) | yes | no |
//! | when marks have ceased, the next probe is at once (`bbr_ecn_reprobe_gain`) | no | yes |

use uncork_units::wide::{mul_div, saturating_mul};
use uncork_units::{Rate, Ratio, Time};

use super::Bbr3;
use super::bounds::UNBOUNDED;
use super::loss::LossSample;
use super::params::PROBE_UP_ROUNDS_MAX;
use super::profile::Profile;
use crate::sampler::RateSample;

/// One in Linux's fixed point. Its few bits matter: alpha settles at a multiple of 1/16, and at 0
/// where less than a sixteenth of the packets is marked.
const ONE: u32 = 1 << 8;
/// `bbr_ecn_alpha_gain`.
const ALPHA_GAIN: u32 = ONE / 16;
/// `bbr_ecn_factor`.
const FACTOR: u32 = ONE / 3;
/// `bbr_ecn_thresh`: the share of marked packets that is too high, as a divisor.
const THRESH_DIVISOR: u64 = 2;
/// `bbr_full_ecn_cnt`.
const STARTUP_ROUNDS: u8 = 2;

/// Marked and delivered bytes at the start of a round.
#[derive(Clone, Copy, Debug, Default)]
struct RoundStart {
    delivered: u64,
    marked: u64,
}

/// The state of this response.
#[derive(Clone, Copy, Debug)]
pub(super) struct EcnResponse {
    /// Whether marks get this response.
    is_on: bool,
    /// `startup_ecn_rounds`.
    startup_rounds: u8,
    /// `ecn_alpha` in 1/256.
    alpha: u16,
    /// `got_ok_bw_probe_sample`: the current probe has seen a round trip without too many marks.
    has_safe_sample: bool,
    /// Whether a window's worth of data is awaited since the latest mark. (Linux leaves TCP_CA_CWR a window
    /// after the first, so that it may probe while marks go on.)
    is_reduced: bool,
    /// C.delivered at which that ends.
    reduced_until: u64,
    /// C.delivered_ce in bytes.
    marked: u64,
    /// The previous round and this one.
    rounds: [RoundStart; 2],
    /// `bw_hi`: what a probe with too many marks leaves of max_bw.
    pub(super) bw_longterm: Rate,
}

impl EcnResponse {
    pub(super) fn new(is_on: bool) -> Self {
        Self {
            is_on,
            startup_rounds: 0,
            alpha: ONE as u16,
            has_safe_sample: false,
            is_reduced: false,
            reduced_until: 0,
            marked: 0,
            rounds: [RoundStart::default(); 2],
            bw_longterm: Rate::MAX,
        }
    }

    /// Never in the kernel: its TCP sends ECT(0), and the verifier has no room for unused code.
    pub(super) fn is_on(&self) -> bool {
        cfg!(not(target_arch = "bpf")) && self.is_on
    }

    /// A new probe begins.
    pub(super) fn start_probe(&mut self) {
        self.has_safe_sample = false;
    }

    /// Bytes were marked, with `delivered` delivered and `in_flight` in flight.
    fn count(&mut self, bytes: u64, delivered: u64, in_flight: u64) {
        self.marked = self.marked.saturating_add(bytes);
        self.is_reduced = true;
        self.reduced_until = delivered.saturating_add(in_flight);
    }

    /// Whether no mark has come for a window's worth of data.
    fn is_quiet(&self, delivered: u64) -> bool {
        !self.is_reduced || delivered >= self.reduced_until
    }

    /// `bbr_update_ecn_alpha`, once per round: updates alpha, and returns the round's share of marked
    /// bytes in 1/256. `prior_delivered` is that of the sample.
    fn end_round(&mut self, prior_delivered: u64, delivered: u64) -> Option<u32> {
        let start = self.rounds[1];
        if prior_delivered < start.delivered {
            return None;
        }
        self.is_reduced = !self.is_quiet(delivered);
        let marked = self.marked;
        let bytes = delivered.saturating_sub(start.delivered);
        self.rounds = [start, RoundStart { delivered, marked }];
        let share = saturating_mul(marked - start.marked, u64::from(ONE)) / bytes.max(1);
        let share = share.min(u64::from(ONE)) as u32;
        let kept = ((ONE - ALPHA_GAIN) * u32::from(self.alpha)) / ONE;
        self.alpha = (kept + ALPHA_GAIN * share / ONE) as u16;
        Some(share)
    }

    /// `bbr_ecn_cut`: what a round with marks leaves of a bound.
    fn cut(&self) -> Ratio {
        Ratio::new(ONE - u32::from(self.alpha) * FACTOR / ONE, ONE)
    }

    /// Whether half of what the sample delivered was marked. What was marked before its packet left
    /// lies between the counts at the start of the previous round and of this one: the packet does, too.
    fn is_too_high(&self, sample: &RateSample) -> bool {
        let [older, newer] = self.rounds;
        let since = self.marked - older.marked;
        if since == 0 {
            return false;
        }
        let round = newer.delivered.saturating_sub(older.delivered);
        let passed = sample.prior_delivered.saturating_sub(older.delivered).min(round);
        let before = mul_div(newer.marked - older.marked, passed, round.max(1));
        let marked = since - before;
        marked > 0 && saturating_mul(marked, THRESH_DIVISOR) >= sample.delivered
    }
}

impl Bbr3 {
    /// Counts the marked packets of a feedback, before its rate sample.
    pub(super) fn count_marks(&mut self, packets: u32) {
        let bytes = saturating_mul(u64::from(packets), self.mss);
        if self.ecn.is_on() {
            self.ecn.count(bytes, self.sampler.delivered(), self.sampler.in_flight());
            self.signals.is_marked_in_round = true;
            self.signals.is_marked_in_cycle = true;
        } else {
            self.sampler.count_marked(bytes);
        }
    }

    /// Updates alpha at the end of a round, and ends Startup after rounds with too many marks.
    pub(super) fn update_ecn_round(&mut self, sample: &RateSample) {
        if !self.ecn.is_on() {
            return;
        }
        let share = self.ecn.end_round(sample.prior_delivered, self.sampler.delivered());
        let Some(share) = share.filter(|_| !self.full_pipe.reached()) else {
            return;
        };
        let is_high = u64::from(share) * THRESH_DIVISOR >= u64::from(ONE);
        self.ecn.startup_rounds = if is_high { self.ecn.startup_rounds + 1 } else { 0 };
        if self.ecn.startup_rounds >= STARTUP_ROUNDS {
            self.declare_startup_too_high();
        }
    }

    /// A bandwidth and an inflight, reduced for a round with marks.
    pub(super) fn cut_for_marks(&self, (bw, inflight): (Rate, u64)) -> (Rate, u64) {
        let cut = self.ecn.cut();
        let bw = match self.profile {
            Profile::V2 => bw.scaled(cut),
            Profile::V3 => Rate::MAX,
        };
        (bw, cut.of(inflight))
    }

    /// Whether marks of this sample say that inflight is too high. If it is of a probe, the probe
    /// ends.
    pub(super) fn check_marks(&mut self, now: Time, sample: &RateSample) -> bool {
        let is_probe = self.cycle.is_bw_probe_sample;
        if !self.ecn.is_too_high(sample) {
            self.ecn.has_safe_sample |= is_probe;
            self.ecn.bw_longterm = self.ecn.bw_longterm.max(sample.delivery_rate);
            return false;
        }
        if is_probe {
            let bounds_bw = self.profile == Profile::V2 && !self.ecn.has_safe_sample;
            if bounds_bw && !sample.is_app_limited {
                let bw = if self.ecn.bw_longterm == Rate::MAX {
                    self.max_bw.get()
                } else {
                    self.ecn.bw_longterm
                };
                self.ecn.bw_longterm = bw.scaled(self.ecn.cut());
            }
            self.handle_inflight_too_high(now, LossSample::from(sample));
            // Losses that turn out to be spurious do not take marks back.
            self.undo_state = None;
        }
        true
    }

    /// Whether marks without losses have ceased, so that the next probe need not wait.
    pub(super) fn has_marks_ceased(&self) -> bool {
        self.ecn.is_on()
            && self.profile == Profile::V3
            && self.signals.is_marked_in_cycle
            && !self.signals.is_loss_in_cycle
            && !self.recovery.is_active()
            && self.ecn.is_quiet(self.sampler.delivered())
    }

    /// Starts the probe that follows marks: its first round raises inflight_longterm by about half.
    pub(super) fn start_reprobe(&mut self) {
        self.start_probe_bw_refill();
        let half = match self.bounds.inflight_longterm {
            UNBOUNDED => u64::MAX,
            bound => bound / self.mss.max(1) / 2,
        };
        self.cycle.up_rounds = (half.max(1).ilog2() as u8).min(PROBE_UP_ROUNDS_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Half of what is in flight is marked: 10 GB, 100 Gbit/s over 0.8 s.
    #[test]
    fn flights_above_4_gib_have_the_share_of_marks_of_smaller_ones() {
        const ROUND: u64 = 10_000_000_000;
        let mut ecn = EcnResponse::new(true);
        for begun in (0..90).map(|round| round * ROUND) {
            ecn.count(ROUND / 2, begun, ROUND);
            assert!(!ecn.is_quiet(begun + 3 * ROUND / 4));
            assert_eq!(ecn.end_round(begun, begun + ROUND), Some(ONE / 2));
            assert!(ecn.is_quiet(begun + ROUND));
        }
        // Half of the packets is a fixed point; a third of it is the cut.
        assert_eq!(ecn.cut().of(256_000), 256_000 - 42_000);
    }

    /// Linux's arithmetic in 1/256 sees nothing below a sixteenth.
    #[test]
    fn few_marks_do_not_raise_alpha() {
        let mut ecn = EcnResponse::new(true);
        for begun in (0..200_u64).map(|round| round * 1_000) {
            ecn.count(60, begun, 1_000);
            ecn.end_round(begun, begun + 1_000);
        }
        assert_eq!(ecn.cut(), Ratio::new(ONE, ONE));
    }

    #[test]
    fn marks_before_the_sample_are_interpolated() {
        let mut ecn = EcnResponse::new(true);
        ecn.end_round(0, 1_000);
        ecn.count(400, 1_000, 1_000);
        ecn.end_round(1_000, 2_000);
        let is_too_high = |prior_delivered, delivered| {
            ecn.is_too_high(&RateSample { delivered, prior_delivered, ..RateSample::default() })
        };
        // 200 of the 400 marks came before the second half of the round.
        assert!(is_too_high(1_500, 400) && !is_too_high(1_500, 401));
        assert!(!is_too_high(2_000, 100), "all marks came before");
    }
}
