//! Latest delivery and congestion signals, and the short-term response to them:
//! draft-ietf-ccwg-bbr-06 §5.5.10.3.

use uncork_units::Rate;

use super::Bbr3;
use super::bounds::LossRound;
use super::deviations::Deviation;
use crate::sampler::RateSample;

/// Signals of the current loss round.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "the draft's state variables, one by one")]
pub(super) struct CongestionSignals {
    /// BBR.is_loss_in_round.
    pub(super) is_loss_in_round: bool,
    /// Whether a packet of this loss round had a CE mark.
    pub(super) is_marked_in_round: bool,
    /// Whether a packet was lost, or marked, since the latest probe.
    pub(super) is_loss_in_cycle: bool,
    pub(super) is_marked_in_cycle: bool,
    /// BBR.loss_round_start: this ACK ends a loss round.
    pub(super) loss_round_start: bool,
    /// Discontiguous ranges lost in this loss round.
    pub(super) lost_ranges: u8,
    /// BBR.loss_round_delivered.
    loss_round_delivered: u64,
    /// BBR.bw_latest.
    pub(super) bw_latest: Rate,
    /// BBR.inflight_latest.
    pub(super) inflight_latest: u64,
}

impl CongestionSignals {
    /// ResetCongestionSignals().
    //= bbr-06 5.5.10.3-3
    pub(super) fn reset(&mut self) {
        self.is_loss_in_round = false;
        self.is_marked_in_round = false;
        self.is_loss_in_cycle = false;
        self.is_marked_in_cycle = false;
        self.bw_latest = Rate::ZERO;
        self.inflight_latest = 0;
    }

    /// Counts lost ranges, for the loss exit of Startup.
    pub(super) fn count_ranges(&mut self, ranges: u32) {
        let ranges = u8::try_from(ranges).unwrap_or(u8::MAX);
        self.lost_ranges = self.lost_ranges.saturating_add(ranges);
    }

    /// UpdateLatestDeliverySignals(). `delivered` is C.delivered.
    //= bbr-06 5.5.10.3-1
    fn update_latest(&mut self, sample: &RateSample, delivered: u64) {
        self.bw_latest = self.bw_latest.max(sample.delivery_rate);
        self.inflight_latest = self.inflight_latest.max(sample.delivered);
        self.loss_round_start = sample.prior_delivered >= self.loss_round_delivered;
        if self.loss_round_start {
            self.loss_round_delivered = delivered;
        }
    }

    /// AdvanceLatestDeliverySignals().
    //= bbr-06 5.5.10.3-2
    pub(super) fn advance_latest(&mut self, sample: &RateSample) {
        if self.loss_round_start {
            self.bw_latest = sample.delivery_rate;
            self.inflight_latest = sample.delivered;
            self.lost_ranges = 0;
        }
    }
}

impl Bbr3 {
    /// UpdateLatestDeliverySignals(). Skips a sample without a reliable rate: its zero would
    /// replace the delivery of the whole round.
    pub(super) fn update_latest_delivery_signals(&mut self, sample: &RateSample) {
        self.signals.loss_round_start = false;
        if sample.is_valid() || !self.deviations.has(Deviation::SkipInvalid) {
            self.signals.update_latest(sample, self.sampler.delivered());
        }
    }

    /// UpdateCongestionSignals().
    //= bbr-06 5.5.10.3-4
    pub(super) fn update_congestion_signals(&mut self, sample: &RateSample) {
        self.update_max_bw(sample);
        self.update_ecn_round(sample);
        if self.signals.loss_round_start {
            self.judge_loss_round();
            self.adapt_lower_bounds_from_congestion();
            self.signals.is_loss_in_round = false;
            self.signals.is_marked_in_round = false;
        }
    }

    /// At the end of a loss round: whether its losses were congestion or the path's baseline loss.
    /// A CE mark always counts as congestion.
    fn judge_loss_round(&mut self) {
        let is_congested = self.loss_floor.end_round() || self.signals.is_marked_in_round;
        self.signals.is_loss_in_round &= is_congested;
    }

    /// AdaptLowerBoundsFromCongestion().
    //= bbr-06 5.3.3.2-2 5.5.10.3-5
    fn adapt_lower_bounds_from_congestion(&mut self) {
        let is_marked = self.signals.is_marked_in_round && self.ecn.is_on();
        if self.state.is_probing_bw() || !(self.signals.is_loss_in_round || is_marked) {
            return;
        }
        let round = LossRound {
            max_bw: self.max_bw.get(),
            cwnd: self.cwnd,
            bw_latest: self.signals.bw_latest,
            inflight_latest: self.signals.inflight_latest,
        };
        let marked = is_marked.then(|| self.cut_for_marks(self.bounds.short_term(&round)));
        if self.signals.is_loss_in_round {
            self.bounds.reduce_short_term(round);
        }
        if let Some(limits) = marked {
            self.bounds.limit_short_term(limits);
        }
    }

    /// NoteLoss(): the loss round starts at the first loss, so that it covers a full round.
    //= bbr-06 5.5.10.2-6
    pub(super) fn note_loss(&mut self) {
        if !self.signals.is_loss_in_round {
            self.signals.loss_round_delivered = self.sampler.delivered();
            if !self.deviations.has(Deviation::UndoPerEpisode) {
                self.save_state_upon_loss(self.recovery.is_active());
            }
        }
        self.signals.is_loss_in_round = true;
        self.signals.is_loss_in_cycle = true;
    }
}
