//! The bandwidth-probing cycle: draft-ietf-ccwg-bbr-06 §5.3.3.

use uncork_units::wide::saturating_mul;
use uncork_units::{Rate, Ratio, Time, TimeDelta};

use super::Bbr3;
use super::bounds::UNBOUNDED;
use super::deviations::Deviation;
use super::loss::LossSample;
use super::params::{
    PROBE_UP_ROUNDS_MAX, PROBE_WAIT_MIN, PROBE_WAIT_RANGE, RENO_ROUNDS, UP_PACING_GAIN,
};
use super::profile::Profile;
use super::rtt_fair::{self, Horizon};
use super::state::{AckPhase, State};
use crate::sampler::RateSample;

/// State of the cycle between two bandwidth probes.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "the draft's state variables, one by one")]
pub(super) struct ProbeCycle {
    /// BBR.ack_phase.
    pub(super) ack_phase: AckPhase,
    /// BBR.is_bw_probe_sample.
    pub(super) is_bw_probe_sample: bool,
    /// BBR.prev_probe_too_high.
    pub(super) prev_probe_too_high: bool,
    /// BBR.prev_probe_precautionary.
    prev_probe_precautionary: bool,
    /// Whether the max_bw filter has advanced since the latest probe began.
    has_advanced_max_bw: bool,
    /// Unit of the window and of max_bw's lifetime between probes: round trips or time.
    pub(super) horizon: Horizon,
    /// BBR.bw_probe_up_rounds.
    pub(super) up_rounds: u8,
    /// BBR.bw_probe_up_acked.
    up_acked: u64,
    /// BBR.probe_up_acked_per_inc.
    up_acked_per_inc: u64,
    /// BBR.rounds_since_probe_up, saturating at [`RENO_ROUNDS`].
    pub(super) rounds_since_up: u8,
    /// The second in which the cycle began that last advanced the max_bw filter.
    pub(super) advanced_second: u32,
    /// BBR.bw_probe_wait.
    wait: TimeDelta,
    /// BBR.cycle_stamp.
    stamp: Time,
}

impl ProbeCycle {
    pub(super) fn new(now: Time) -> Self {
        Self {
            ack_phase: AckPhase::Init,
            is_bw_probe_sample: false,
            prev_probe_too_high: false,
            prev_probe_precautionary: false,
            has_advanced_max_bw: false,
            horizon: Horizon::RoundTrips,
            up_rounds: 0,
            up_acked: 0,
            up_acked_per_inc: UNBOUNDED,
            rounds_since_up: 0,
            advanced_second: rtt_fair::second(now),
            wait: TimeDelta::ZERO,
            stamp: now,
        }
    }

    /// RaiseInflightLongtermSlope(): the growth per round doubles every round.
    //= bbr-06 5.3.3.5-3 5.3.3.9-13
    fn raise_slope(&mut self, cwnd: u64, mss: u64) {
        self.up_acked_per_inc = (cwnd >> self.up_rounds).max(mss);
        self.up_rounds = (self.up_rounds + 1).min(PROBE_UP_ROUNDS_MAX);
    }

    /// By how many packets `newly_acked` bytes raise BBR.inflight_longterm.
    //= bbr-06 5.3.3.5-3
    fn growth(&mut self, newly_acked: u64) -> u64 {
        self.up_acked = self.up_acked.saturating_add(newly_acked);
        let packets = self.up_acked / self.up_acked_per_inc.max(1);
        self.up_acked -= packets * self.up_acked_per_inc;
        packets
    }
}

impl Bbr3 {
    /// StartProbeBW_DOWN().
    //= bbr-06 5.3.3.9-2
    pub(super) fn start_probe_bw_down(&mut self, now: Time) {
        self.signals.reset();
        self.loss_floor.restart_round();
        self.cycle.up_acked_per_inc = UNBOUNDED;
        self.pick_probe_wait();
        self.cycle.stamp = now;
        self.cycle.ack_phase = AckPhase::ProbeStopping;
        self.start_round();
        self.transition(State::ProbeBwDown);
    }

    /// StartProbeBW_CRUISE().
    //= bbr-06 5.3.3.9-3
    pub(super) fn start_probe_bw_cruise(&mut self) {
        self.finish_probe();
        self.transition(State::ProbeBwCruise);
    }

    /// StartProbeBW_REFILL().
    //= bbr-06 5.3.3.3-1 5.3.3.6-4 5.3.3.9-4
    pub(super) fn start_probe_bw_refill(&mut self) {
        self.bounds.reset_short_term();
        self.cycle.up_rounds = 0;
        self.cycle.up_acked = 0;
        self.cycle.prev_probe_precautionary = false;
        self.ecn.start_probe();
        self.cycle.has_advanced_max_bw = false;
        self.cycle.ack_phase = AckPhase::Refilling;
        self.start_round();
        self.transition(State::ProbeBwRefill);
    }

    /// StartProbeBW_UP().
    //= bbr-06 5.3.3.9-5
    fn start_probe_bw_up(&mut self, now: Time, rate: Rate) {
        self.cycle.stamp = now;
        self.cycle.ack_phase = AckPhase::ProbeStarting;
        self.start_round();
        self.full_pipe.restart(rate);
        self.transition(State::ProbeBwUp);
        self.cycle.raise_slope(self.cwnd, self.mss);
    }

    /// PickProbeWait(), §5.3.3.8.3: random, so that flows do not probe in sync.
    //= bbr-06 5.3.3.8.2-1 5.3.3.8.3-2
    fn pick_probe_wait(&mut self) {
        self.cycle.rounds_since_up = u8::from(self.rng.below(2) != 0);
        let extra = self.rng.below(PROBE_WAIT_RANGE.as_nanos());
        self.cycle.wait = PROBE_WAIT_MIN + TimeDelta::from_nanos(extra);
    }

    /// UpdateProbeBWCyclePhase().
    //= bbr-06 5.3.3.2-3 5.3.3.3-3 5.3.3.9-6 5.3.3.9-7
    pub(super) fn update_probe_bw_cycle_phase(&mut self, now: Time, sample: &RateSample) {
        if !self.full_pipe.reached() || self.adapt_long_term_model(now, sample) {
            return;
        }
        match self.state {
            State::ProbeBwDown | State::ProbeBwCruise if self.has_marks_ceased() => {
                self.finish_probe();
                self.start_reprobe();
            }
            State::ProbeBwDown | State::ProbeBwCruise if self.is_time_to_probe_bw(now) => {
                self.finish_probe();
                self.start_probe_bw_refill();
            }
            State::ProbeBwDown if self.is_time_to_cruise() => self.start_probe_bw_cruise(),
            State::ProbeBwRefill if self.round.started() => {
                self.cycle.is_bw_probe_sample = true;
                self.start_probe_bw_up(now, sample.delivery_rate);
            }
            State::ProbeBwUp => self.check_probe_up_done(now, sample),
            _ => {}
        }
    }

    //= bbr-06 5.3.3.6-4 5.3.3.9-8
    fn check_probe_up_done(&mut self, now: Time, sample: &RateSample) {
        if self.is_time_to_go_down(now, sample) {
            self.cycle.prev_probe_too_high = false;
            self.start_probe_bw_down(now);
        }
    }

    /// IsTimeToProbeBW(): after the wall-clock wait, or after the rounds a Reno flow would need to
    /// fill the same pipe, the earlier of the two.
    //= bbr-06 5.3.3.8.2-2 5.3.3.8.2-3 5.3.3.8.3-1 5.3.3.8.3-3
    fn is_time_to_probe_bw(&self, now: Time) -> bool {
        let rounds = u64::from(self.cycle.rounds_since_up);
        now > self.cycle.stamp + self.cycle.wait
            || rounds >= RENO_ROUNDS
            || saturating_mul(rounds, self.mss) >= self.target_inflight()
    }

    /// IsTimeToCruise().
    //= bbr-06 5.3.3.1-2 5.3.3.1-3 5.3.3.9-9
    fn is_time_to_cruise(&self) -> bool {
        let in_flight = self.sampler.in_flight();
        in_flight <= self.inflight_with_headroom()
            && in_flight <= self.inflight_at_max_bw(Ratio::ONE)
    }

    /// IsTimeToGoDown().
    //= bbr-06 5.3.3.5-2 5.3.3.6-1 5.3.3.6-2 5.3.3.7-4 5.3.3.9-10
    fn is_time_to_go_down(&mut self, now: Time, sample: &RateSample) -> bool {
        let longterm = self.bounds.inflight_longterm;
        if self.cycle.prev_probe_too_high && self.has_come_up_to(longterm, sample) {
            self.cycle.prev_probe_precautionary = true;
            return true;
        }
        match self.profile {
            Profile::V2 => self.has_built_queue(now, sample),
            Profile::V3 => self.has_filled_pipe(sample),
        }
    }

    /// BBRv2 ends its probe once a round of probing has built a queue of a quarter BDP
    /// (draft-cardwell-iccrg-bbr-congestion-control-02 §4.3.3.4).
    fn has_built_queue(&self, now: Time, sample: &RateSample) -> bool {
        let round = self.min_rtt.get().unwrap_or_default();
        now > self.cycle.stamp + round
            && self.has_come_up_to(self.inflight_at_max_bw(UP_PACING_GAIN), sample)
    }

    /// Whether the delivery rate has stopped growing although BBR.inflight_longterm does not limit
    /// it.
    //= bbr-06 5.3.3.7-1 5.3.3.7-2
    fn has_filled_pipe(&mut self, sample: &RateSample) -> bool {
        if self.is_held_by_longterm() {
            self.full_pipe.restart(sample.delivery_rate);
            return false;
        }
        self.full_pipe.is_full_now()
    }

    /// Whether inflight has reached `volume`, to within a packet. If the window does not exceed
    /// that volume, inflight after an ACK never reaches it, but inflight before the ACK does.
    //= bbr-06 5.3.3.6-1
    fn has_come_up_to(&self, volume: u64, sample: &RateSample) -> bool {
        let in_flight = if self.deviations.has(Deviation::InflightBeforeAck) {
            sample.prior_in_flight.saturating_add(self.mss - 1)
        } else {
            self.sampler.in_flight()
        };
        in_flight >= volume
    }

    /// Whether BBR.inflight_longterm, rather than the path, limits inflight.
    //= bbr-06 5.3.3.7-2
    fn is_held_by_longterm(&self) -> bool {
        self.cwnd_usage.is_limited() && self.cwnd >= self.bounds.inflight_longterm
    }

    /// AdaptLongTermModel(). Returns whether it changed the state.
    fn adapt_long_term_model(&mut self, now: Time, sample: &RateSample) -> bool {
        if self.round.started() && self.advance_ack_phase(sample) {
            return true;
        }
        let has_many_marks = self.ecn.is_on() && self.check_marks(now, sample);
        let is_safe = !has_many_marks && !self.is_inflight_too_high(&LossSample::from(sample));
        if is_safe && self.bounds.inflight_longterm != UNBOUNDED {
            self.raise_inflight_longterm(sample);
        }
        false
    }

    /// The part of AdaptLongTermModel() that runs once per round.
    //= bbr-06 5.3.3.9-15
    fn advance_ack_phase(&mut self, sample: &RateSample) -> bool {
        match self.cycle.ack_phase {
            AckPhase::ProbeStarting => self.cycle.ack_phase = AckPhase::ProbeFeedback,
            AckPhase::ProbeStopping => return self.end_probe_feedback(sample),
            _ => {}
        }
        false
    }

    /// The probe's last ACKs have arrived. If it was cut short as a precaution and was safe, start
    /// a full probe at once (§5.3.3.6).
    //= bbr-06 5.3.3.6-3 5.3.3.9-16
    fn end_probe_feedback(&mut self, sample: &RateSample) -> bool {
        self.cycle.is_bw_probe_sample = false;
        if !cfg!(uncork_mutant = "no-acks-init") {
            self.cycle.ack_phase = AckPhase::Init;
        }
        if !self.state.is_probe_bw() {
            return false;
        }
        if !sample.is_app_limited {
            self.advance_max_bw_filter();
        }
        let again = self.cycle.prev_probe_precautionary && !self.cycle.prev_probe_too_high;
        if again {
            self.finish_probe();
            self.start_probe_bw_refill();
        }
        again
    }

    /// Inflight at this level was safe: raises the bound to it, and further while probing.
    //= bbr-06 5.3.3.9-17
    fn raise_inflight_longterm(&mut self, sample: &RateSample) {
        self.bounds.inflight_longterm = self.bounds.inflight_longterm.max(sample.tx_in_flight);
        if self.state == State::ProbeBwUp {
            self.probe_inflight_longterm_upward(sample);
        }
    }

    /// ProbeInflightLongtermUpward().
    //= bbr-06 5.3.3.9-14
    fn probe_inflight_longterm_upward(&mut self, sample: &RateSample) {
        if !self.is_held_by_longterm() {
            return;
        }
        let packets = self.cycle.growth(sample.newly_acked);
        let bytes = saturating_mul(packets, self.mss);
        self.bounds.inflight_longterm = self.bounds.inflight_longterm.saturating_add(bytes);
        if self.round.started() {
            self.cycle.raise_slope(self.cwnd, self.mss);
        }
    }

    /// AdvanceMaxBwFilter(), at most once per probe.
    //= bbr-06 5.5.6-1
    fn advance_max_bw_filter(&mut self) {
        let forced = self.deviations.has(Deviation::AdvanceEveryCycle);
        if !(forced && self.cycle.has_advanced_max_bw) {
            if self.keeps_max_bw(self.cycle.stamp) {
                return;
            }
            self.cycle.advanced_second = rtt_fair::second(self.cycle.stamp);
            self.max_bw.advance();
            self.loss_floor.end_cycle();
        }
        self.cycle.has_advanced_max_bw = true;
    }

    /// Completes the latest probe. In the draft, only a round of ACKs that is not
    /// application-limited advances the filter. ProbeRTT marks its samples application-limited and
    /// can cut every probe short, so the filter would never expire. Here it advances at the end of
    /// a probe at the latest.
    fn finish_probe(&mut self) {
        if self.deviations.has(Deviation::AdvanceEveryCycle) {
            self.advance_max_bw_filter();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::control::CwndUsage;
    use super::super::deviations::Deviations;
    use super::super::profile::Profile;
    use super::*;
    use crate::Settings;

    fn bbr() -> Bbr3 {
        let settings = Settings {
            mss: 1_452,
            initial_window: 14_520,
            initial_rtt: None,
            paced: false,
            segmentation_offload: false,
            scalable_marks: false,
            clock_granularity: TimeDelta::ZERO,
            inherited: None,
            seed: 1,
            now: Time::ZERO,
        };
        Bbr3::with(&settings, Profile::V3, Deviations::ALL)
    }

    #[test]
    fn longterm_bound_limits_only_a_full_window_at_the_bound() {
        let held = |is_full: bool, inflight_longterm: u64| {
            let mut bbr = bbr();
            bbr.cwnd_usage = CwndUsage::UNUSED;
            if is_full {
                bbr.cwnd_usage.on_full(0);
            }
            bbr.bounds.inflight_longterm = inflight_longterm;
            bbr.is_held_by_longterm()
        };
        assert!(held(true, 14_520));
        assert!(!held(true, 14_521), "the window is smaller than the bound");
        assert!(!held(false, 14_520), "the window is not full");
    }

    #[test]
    fn inflight_reaches_a_volume_to_within_a_packet() {
        let reaches = |prior_in_flight| {
            bbr().has_come_up_to(14_520, &RateSample { prior_in_flight, ..RateSample::default() })
        };
        assert!(reaches(14_520 - 1_451));
        assert!(!reaches(14_520 - 1_452));
    }

    #[test]
    //= bbr-06 5.3.3.8.2-1 5.3.3.8.3-2 test
    fn probe_wait_is_random_in_seconds_and_rounds() {
        let mut bbr = bbr();
        let mut tenths = [0_u32; 10];
        let mut ahead = [0_u32; 2];
        for _ in 0..10_000 {
            bbr.pick_probe_wait();
            let beyond = bbr.cycle.wait.as_nanos() - PROBE_WAIT_MIN.as_nanos();
            assert!(beyond < PROBE_WAIT_RANGE.as_nanos());
            tenths[(beyond / 100_000_000) as usize] += 1;
            ahead[bbr.cycle.rounds_since_up as usize] += 1;
        }
        assert!(tenths.iter().all(|count| (850..1_150).contains(count)), "{tenths:?}");
        assert!(ahead.iter().all(|count| (4_700..5_300).contains(count)), "{ahead:?}");
    }
}
