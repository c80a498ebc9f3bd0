//! The order in which an ACK updates the model: draft-ietf-ccwg-bbr-06 §5.2.3, and the parts of the
//! model without a file of their own.

use uncork_units::wide::forget;
use uncork_units::{Rate, Time};

use super::Bbr3;
use super::ack_aggregation::AckArrival;
use super::params::{EXTRA_ACKED_FILTER_LEN, EXTRA_ACKED_STARTUP_LEN};
use crate::sampler::RateSample;

impl Bbr3 {
    /// UpdateModelAndState(). The order is the draft's and must be kept.
    //= bbr-06 5.2.3-2
    pub(super) fn update_model_and_state(&mut self, now: Time, sample: &RateSample) {
        self.update_latest_delivery_signals(sample);
        forget();
        self.update_congestion_signals(sample);
        forget();
        self.update_ack_aggregation(now, sample);
        forget();
        self.check_full_bw_reached(sample);
        forget();
        self.check_startup_done(sample);
        forget();
        self.check_drain_done(now);
        forget();
        self.update_probe_bw_cycle_phase(now, sample);
        forget();
        let known = self.min_rtt.get();
        let expired = self.min_rtt.update(now, sample.rtt);
        if self.min_rtt.get() != known {
            self.update_bdp();
        }
        self.check_probe_rtt(now, sample, expired);
        forget();
        self.signals.advance_latest(sample);
        forget();
        self.bound_bw_for_model();
    }

    /// UpdateMaxBw(), §5.5.5.
    //= bbr-06 5.5.4-1 5.5.5-1
    pub(super) fn update_max_bw(&mut self, sample: &RateSample) {
        self.update_round(sample);
        let rate = sample.delivery_rate;
        if rate > Rate::ZERO && (rate >= self.max_bw.get() || !sample.is_app_limited) {
            self.max_bw.update(rate);
        }
    }

    /// UpdateRound(), §5.5.1.
    //= bbr-06 5.5.1-3
    fn update_round(&mut self, sample: &RateSample) {
        if self.round.update(sample.prior_delivered, self.sampler.delivered()) {
            self.cycle.rounds_since_up = self.cycle.rounds_since_up.saturating_add(1);
        }
    }

    /// StartRound().
    pub(super) fn start_round(&mut self) {
        self.round.restart(self.sampler.delivered());
    }

    //= bbr-06 5.5.9-4
    fn update_ack_aggregation(&mut self, now: Time, sample: &RateSample) {
        let reached = self.full_pipe.reached();
        self.aggregation.update(AckArrival {
            now,
            newly_acked: sample.newly_acked,
            bw: self.bw,
            cwnd: self.cwnd,
            round: self.round.count(),
            window: if reached { EXTRA_ACKED_FILTER_LEN } else { EXTRA_ACKED_STARTUP_LEN },
        });
    }

    /// BoundBWForModel().
    //= bbr-06 5.5.10.3-9 5.6.1-2
    pub(super) fn bound_bw_for_model(&mut self) {
        let mut bw = self.max_bw.get().min(self.bounds.bw_shortterm);
        if self.ecn.is_on() {
            bw = bw.min(self.ecn.bw_longterm);
        }
        if bw != self.bw {
            self.bw = bw;
            self.is_pacing_due = true;
            self.update_bdp();
        }
    }

    /// Recomputes BBR.bdp from BBR.bw and BBR.min_rtt.
    fn update_bdp(&mut self) {
        self.bdp = self.min_rtt.get().map_or(0, |min_rtt| self.bw.bytes_in(min_rtt));
    }
}
