//! The model of the path: rounds, bandwidth, aggregation and the response to loss (§5.5).

use super::model::{Ack, Bbr, State};
use super::sampler::{Packet, RateSample};

const BETA: f64 = 0.7;
const EXTRA_ACKED_FILTER_LEN: f64 = 10.0;

impl Bbr {
    /// UpdateRound(), §5.5.1.
    fn update_round(&mut self) {
        self.round_start = self.rs.prior_delivered >= self.next_round_delivered;
        if self.round_start {
            self.start_round();
            self.round_count += 1;
            self.rounds_since_probe_up += 1;
        }
    }

    /// StartRound().
    pub(crate) fn start_round(&mut self) {
        self.next_round_delivered = self.c.delivered;
    }

    /// UpdateMaxBw(), §5.5.5.
    fn update_max_bw(&mut self) {
        self.update_round();
        let rate = self.rs.delivery_rate;
        if rate > 0.0 && (rate >= self.max_bw || !self.rs.is_app_limited) {
            self.max_bw_filter.insert(rate);
            self.max_bw = self.max_bw_filter.max();
        }
    }

    /// AdvanceMaxBwFilter(), §5.5.6.
    pub(crate) fn advance_max_bw_filter(&mut self) {
        self.filter_is_due = false;
        self.max_bw_filter.advance();
        self.max_bw = self.max_bw_filter.max();
    }

    /// UpdateACKAggregation(), §5.5.9.
    pub(crate) fn update_ack_aggregation(&mut self) {
        let interval = self.now - self.extra_acked_interval_start;
        let mut expected = (self.bw * interval / 1e9).floor();
        if self.extra_acked_delivered <= expected {
            self.extra_acked_delivered = 0.0;
            self.extra_acked_interval_start = self.now;
            expected = 0.0;
        }
        self.extra_acked_delivered += self.rs.newly_acked;
        let extra = (self.extra_acked_delivered - expected).min(self.c.cwnd);
        let filter_len = if self.full_bw_reached { EXTRA_ACKED_FILTER_LEN } else { 1.0 };
        let round = self.round_count as f64;
        self.extra_acked = self.extra_acked_filter.update(filter_len, round, extra);
    }

    /// CheckFullBWReached(), §5.3.1.2.
    pub(crate) fn check_full_bw_reached(&mut self) {
        if self.full_bw_now || !self.round_start || self.rs.is_app_limited {
            return;
        }
        if !self.rs.is_reliable && !self.switches.j_unreliable_samples_count {
            return;
        }
        let rate = self.rs.delivery_rate;
        if rate >= self.full_bw * 1.25 {
            self.reset_full_bw();
            self.full_bw = rate;
            return;
        }
        self.full_bw_count += 1;
        self.full_bw_now = self.full_bw_count >= 3;
        if self.full_bw_now {
            self.full_bw_reached = true;
        }
    }

    /// ResetFullBW().
    pub(crate) fn reset_full_bw(&mut self) {
        self.full_bw = 0.0;
        self.full_bw_count = 0;
        self.full_bw_now = false;
    }

    /// Handles the losses of an ACK one by one, then the events that count as losses: a loss
    /// repaired by a probe (k), and CE marks.
    pub(crate) fn handle_losses(&mut self, ack: &Ack<'_>) {
        let mut lost = self.c.lost;
        self.c.lost += ack.lost.iter().map(|(packet, _)| packet.size).sum::<f64>();
        self.c.fill_in_volumes(&mut self.rs, &self.switches);
        for (packet, contiguous) in ack.lost {
            lost += packet.size;
            self.handle_lost_packet(packet, lost, *contiguous);
        }
        if ack.repaired_by_probe && !self.switches.k_repaired_losses_are_ignored {
            self.note("loss repaired by a probe");
            self.note_loss();
            self.loss_ranges_in_round += 1;
            self.recovery.may_undo = false;
            let mut flight = self.rs;
            flight.tx_in_flight = self.inflight_latest + self.c.smss;
            flight.lost = self.c.smss;
            self.judge(&flight);
        }
        if ack.ce_packets > 0 {
            self.note("CE mark");
            self.note_loss();
            self.loss_ranges_in_round += ack.ce_packets;
            self.recovery.may_undo = false;
            let flight = self.rs;
            self.judge(&flight);
        }
    }

    fn judge(&mut self, flight: &RateSample) {
        if self.is_bw_probe_sample && Self::is_inflight_too_high(flight) {
            self.handle_inflight_too_high(flight);
        }
    }

    /// NoteLoss(), §5.5.10.2.
    fn note_loss(&mut self) {
        if !self.is_loss_in_round {
            self.loss_round_delivered = self.c.delivered;
            if self.switches.h_undo_state_is_saved_each_round {
                self.save_state_upon_loss();
            }
        }
        self.is_loss_in_round = true;
    }

    /// HandleLostPacket(). `lost` is C.lost including this packet but not later ones.
    fn handle_lost_packet(&mut self, packet: &Packet, lost: f64, contiguous: bool) {
        self.note_loss();
        if !contiguous {
            self.loss_ranges_in_round += 1;
        }
        if !self.is_bw_probe_sample {
            return;
        }
        let mut rs = self.rs;
        rs.tx_in_flight = packet.tx_in_flight;
        rs.lost = lost - packet.lost;
        rs.is_app_limited = packet.is_app_limited;
        let too_high = Self::is_inflight_too_high(&rs);
        if too_high {
            rs.tx_in_flight = Self::inflight_at_loss(packet, &rs);
        }
        if self.switches.b_losses_overwrite_the_sample {
            self.rs = rs;
        }
        if too_high {
            self.handle_inflight_too_high(&rs);
        }
    }

    /// IsInflightTooHigh(). 2 % of whole numbers, so it is exact.
    pub(crate) fn is_inflight_too_high(rs: &RateSample) -> bool {
        rs.lost * 100.0 > rs.tx_in_flight * 2.0
    }

    /// InflightAtLoss().
    fn inflight_at_loss(packet: &Packet, rs: &RateSample) -> f64 {
        let inflight_prev = rs.tx_in_flight - packet.size;
        let lost_prev = rs.lost - packet.size;
        let lost_prefix = (inflight_prev * 2.0 - lost_prev * 100.0) / 98.0;
        inflight_prev + lost_prefix.max(0.0).floor()
    }

    /// HandleInflightTooHigh().
    fn handle_inflight_too_high(&mut self, rs: &RateSample) {
        self.prev_probe_too_high = true;
        self.is_bw_probe_sample = false;
        if !rs.is_app_limited {
            self.inflight_longterm = rs.tx_in_flight.max(self.target_inflight() * BETA);
        }
        if self.state == State::ProbeBwUp {
            self.note("UP ends by loss");
            self.undo_state = Some(State::ProbeBwUp);
            self.start_probe_bw_down();
        }
    }

    /// UpdateLatestDeliverySignals(), §5.5.10.3.
    pub(crate) fn update_latest_delivery_signals(&mut self) {
        self.loss_round_start = false;
        if !self.rs.is_reliable && !self.switches.j_unreliable_samples_count {
            return;
        }
        self.bw_latest = self.bw_latest.max(self.rs.delivery_rate);
        self.inflight_latest = self.inflight_latest.max(self.rs.delivered);
        if self.rs.prior_delivered >= self.loss_round_delivered {
            self.loss_round_delivered = self.c.delivered;
            self.loss_round_start = true;
        }
    }

    /// AdvanceLatestDeliverySignals().
    pub(crate) fn advance_latest_delivery_signals(&mut self) {
        if self.loss_round_start {
            self.bw_latest = self.rs.delivery_rate;
            self.inflight_latest = self.rs.delivered;
        }
    }

    /// ResetCongestionSignals().
    pub(crate) fn reset_congestion_signals(&mut self) {
        self.is_loss_in_round = false;
        self.bw_latest = 0.0;
        self.inflight_latest = 0.0;
    }

    /// UpdateCongestionSignals(), AdaptLowerBoundsFromCongestion().
    pub(crate) fn update_congestion_signals(&mut self) {
        self.update_max_bw();
        if !self.loss_round_start {
            return;
        }
        if !self.is_probing_bw() && self.is_loss_in_round {
            self.note("lower bounds fall");
            self.init_lower_bounds();
            self.loss_lower_bounds();
        }
        self.is_loss_in_round = false;
    }

    /// InitLowerBounds().
    fn init_lower_bounds(&mut self) {
        if self.bw_shortterm == f64::INFINITY {
            self.bw_shortterm = self.max_bw;
        }
        if self.inflight_shortterm == f64::INFINITY {
            self.inflight_shortterm = self.c.cwnd;
        }
    }

    /// LossLowerBounds().
    fn loss_lower_bounds(&mut self) {
        self.bw_shortterm = self.bw_latest.max((self.bw_shortterm * 7.0 / 10.0).floor());
        self.inflight_shortterm = self.inflight_latest.max(BETA * self.inflight_shortterm);
    }

    /// ResetShortTermModel().
    pub(crate) fn reset_short_term_model(&mut self) {
        self.bw_shortterm = f64::INFINITY;
        self.inflight_shortterm = f64::INFINITY;
    }

    /// BoundBWForModel().
    pub(crate) fn bound_bw_for_model(&mut self) {
        self.bw = self.max_bw.min(self.bw_shortterm);
    }
}
