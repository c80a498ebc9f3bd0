//! Evaluation of each loss during a bandwidth probe: draft-ietf-ccwg-bbr-06 §5.5.10.2.

use uncork_units::Time;
use uncork_units::wide::saturating_mul;

use super::Bbr3;
use super::deviations::Deviation;
use super::params::{BETA, LOSS_THRESH_PERCENT};
use super::state::State;
use crate::event::{Feedback, Lost};
use crate::sampler::RateSample;

/// The flight a packet belonged to, as known when the packet is acknowledged or lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct LossSample {
    /// Bytes in flight when the packet left, itself included.
    pub(super) tx_in_flight: u64,
    /// Bytes declared lost since.
    pub(super) lost: u64,
    /// Whether the sender was application-limited when it left.
    pub(super) is_app_limited: bool,
}

impl From<&RateSample> for LossSample {
    fn from(sample: &RateSample) -> Self {
        Self {
            tx_in_flight: sample.tx_in_flight,
            lost: sample.lost,
            is_app_limited: sample.is_app_limited,
        }
    }
}

impl LossSample {
    /// IsInflightTooHigh(): more than LossThresh of the flight was lost.
    //= bbr-06 5.5.10.2-1
    pub(super) fn exceeds_loss_thresh(&self) -> bool {
        saturating_mul(self.lost, 100) > saturating_mul(self.tx_in_flight, LOSS_THRESH_PERCENT)
    }

    /// InflightAtLoss(): inflight at the point where losses crossed LossThresh. That point may lie
    /// within the last packet, of `size` bytes, if it is an offload burst.
    //= bbr-06 5.5.10.2-9
    fn inflight_at_loss(&self, size: u64) -> u64 {
        let inflight_prev = self.tx_in_flight.saturating_sub(size);
        let lost_prev = self.lost.saturating_sub(size);
        let budget = saturating_mul(inflight_prev, LOSS_THRESH_PERCENT);
        let lost_prefix =
            budget.saturating_sub(saturating_mul(lost_prev, 100)) / (100 - LOSS_THRESH_PERCENT);
        inflight_prev + lost_prefix
    }
}

impl Bbr3 {
    /// Processes all congestion signals of a feedback before the model is updated, so that C.lost
    /// and the rate sample refer to the same ACK.
    //= bbr-06 5.2.4-1
    pub(super) fn handle_losses(
        &mut self,
        now: Time,
        feedback: &Feedback<'_>,
        sample: &mut RateSample,
    ) {
        // The sampler has already counted all losses of this feedback. A packet is judged by the
        // losses up to and including itself.
        let mut lost = self.sampler.lost().saturating_sub(sample.newly_lost);
        for packet in feedback.lost {
            lost = lost.saturating_add(u64::from(packet.bytes));
            self.handle_lost_packet(now, packet, lost, sample);
        }
        if feedback.repaired_by_probe && self.deviations.has(Deviation::ProbeRepair) {
            self.handle_repaired_loss(now, sample);
        }
        if feedback.ce_packets > 0 && !self.ecn.is_on() {
            self.handle_ce(now, feedback.ce_packets, sample);
        }
    }

    /// HandleLostPacket(). The draft stores the packet's numbers in the ACK's RS, where the model
    /// then reads them as the ACK's. Here the packet has its own sample.
    //= bbr-06 5.5.10.2-8
    fn handle_lost_packet(&mut self, now: Time, packet: &Lost, lost: u64, sample: &mut RateSample) {
        self.note_loss();
        self.signals.count_ranges(u32::from(!packet.contiguous));
        if !self.cycle.is_bw_probe_sample {
            return;
        }
        let token = &packet.token;
        let mut flight = LossSample {
            tx_in_flight: token.tx_in_flight(),
            lost: lost.saturating_sub(token.lost),
            is_app_limited: token.is_app_limited(),
        };
        let too_high = self.is_inflight_too_high(&flight);
        if too_high {
            flight.tx_in_flight = flight.inflight_at_loss(u64::from(packet.bytes));
        }
        if !self.deviations.has(Deviation::LossSample) {
            sample.tx_in_flight = flight.tx_in_flight;
            sample.lost = flight.lost;
            sample.is_app_limited = flight.is_app_limited;
        }
        if too_high {
            self.handle_inflight_too_high(now, flight);
        }
    }

    /// A tail-loss probe filled a hole before it was declared lost: one packet was lost (RFC 8985
    /// §7.4.2), out of the flight that the last round delivered.
    fn handle_repaired_loss(&mut self, now: Time, sample: &RateSample) {
        self.note_loss();
        self.signals.count_ranges(1);
        self.recovery.confirm();
        let flight = LossSample {
            tx_in_flight: self.signals.inflight_latest.saturating_add(self.mss),
            lost: self.mss,
            is_app_limited: sample.is_app_limited,
        };
        if self.cycle.is_bw_probe_sample && self.is_inflight_too_high(&flight) {
            self.handle_inflight_too_high(now, flight);
        }
    }

    /// A CE mark counts as a loss of the marked packet (§3.7: CE MUST be treated as congestion), unless
    /// marks mean a shallow threshold (`ecn.rs`).
    /// The marked bytes are part of C.lost, so the ACK's own sample holds the mark rate of the
    /// flight. Spurious losses never undo a mark.
    //= bbr-06 3.7-1
    fn handle_ce(&mut self, now: Time, packets: u32, sample: &RateSample) {
        self.note_loss();
        self.signals.count_ranges(packets);
        self.signals.is_marked_in_round = true;
        self.recovery.confirm();
        let flight = LossSample::from(sample);
        if self.cycle.is_bw_probe_sample && self.is_inflight_too_high(&flight) {
            self.handle_inflight_too_high(now, flight);
        }
    }

    /// IsInflightTooHigh(), for the losses beyond the loss floor.
    pub(super) fn is_inflight_too_high(&self, flight: &LossSample) -> bool {
        if !flight.exceeds_loss_thresh() {
            return false;
        }
        let packets = flight.tx_in_flight / self.mss.max(1);
        let allowance = self.loss_floor.allowance(packets, !self.full_pipe.reached());
        let lost = flight.lost.saturating_sub(saturating_mul(allowance, self.mss));
        LossSample { lost, ..*flight }.exceeds_loss_thresh()
    }

    /// HandleInflightTooHigh(): once per bandwidth probe.
    //= bbr-06 5.3.3.7-3 5.5.10.2-3 5.5.10.2-4 5.5.10.2-5
    pub(super) fn handle_inflight_too_high(&mut self, now: Time, flight: LossSample) {
        self.cycle.prev_probe_too_high = true;
        self.cycle.is_bw_probe_sample = false;
        if !flight.is_app_limited {
            self.bounds.inflight_longterm =
                flight.tx_in_flight.max(BETA.of(self.target_inflight()));
        }
        if self.state == State::ProbeBwUp {
            self.undo_state = Some(State::ProbeBwUp);
            self.start_probe_bw_down(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flight(tx_in_flight: u64, lost: u64) -> LossSample {
        LossSample { tx_in_flight, lost, is_app_limited: false }
    }

    #[test]
    //= bbr-06 2.8-1 5.5.10.2-1 test
    fn two_percent_is_safe_and_more_is_not() {
        assert!(!flight(100_000, 2_000).exceeds_loss_thresh());
        assert!(flight(100_000, 2_001).exceeds_loss_thresh());
    }

    #[test]
    //= bbr-06 5.5.10.2-9 test
    fn losses_crossed_the_threshold_within_the_last_burst() {
        // A burst of 10 000 bytes behind 90 000 in flight is lost completely: 2 % of x is lost at x
        // = 90 000 + 1 800 / 0.98.
        assert_eq!(flight(100_000, 10_000).inflight_at_loss(10_000), 91_836);
    }

    #[test]
    //= bbr-06 5.5.10.2-9 test
    fn losses_crossed_the_threshold_before_the_last_packet() {
        assert_eq!(flight(100_000, 9_000).inflight_at_loss(1_000), 99_000);
        assert_eq!(flight(500, 9_000).inflight_at_loss(1_000), 0);
    }
}
