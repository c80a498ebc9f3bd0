//! ProbeBW, the gain cycle: draft-00 §4.3.4.

use uncork_units::{Ratio, Time};

use super::params::{CYCLE_PHASES, PROBE_DOWN_GAIN, PROBE_UP_GAIN};
use super::{Ack, Bbr1, Mode};

/// The current phase of the cycle: up, down, six times cruise.
#[derive(Clone, Copy, Debug)]
pub(super) struct GainCycle {
    phase: u64,
    since: Time,
}

impl GainCycle {
    pub(super) fn new(now: Time) -> Self {
        Self { phase: 0, since: now }
    }

    pub(super) fn pacing_gain(self) -> Ratio {
        match self.phase {
            0 => PROBE_UP_GAIN,
            1 => PROBE_DOWN_GAIN,
            _ => Ratio::ONE,
        }
    }

    pub(super) fn is_probing_up(self) -> bool {
        self.phase == 0
    }

    fn advance(&mut self, now: Time) {
        *self = Self { phase: (self.phase + 1) % CYCLE_PHASES, since: now };
    }
}

impl Bbr1 {
    /// Starts the cycle in a random phase so that flows do not probe in sync. The drain phase is
    /// excluded: the queue is still empty.
    pub(super) fn enter_probe_bw(&mut self, now: Time) {
        self.mode = Mode::ProbeBw;
        self.cycle.phase = CYCLE_PHASES - 1 - self.rng.below(CYCLE_PHASES - 1);
        self.cycle.advance(now);
    }

    pub(super) fn update_cycle_phase(&mut self, ack: &Ack<'_>) {
        if self.mode == Mode::ProbeBw && self.is_next_phase(ack) {
            self.cycle.advance(ack.now);
        }
    }

    /// Cruising lasts one min_rtt. Probing up lasts at least one min_rtt, and until inflight
    /// reaches 1.25 BDP or a packet is lost. Draining ends early once inflight is down to one BDP.
    fn is_next_phase(&self, ack: &Ack<'_>) -> bool {
        let min_rtt = self.min_rtt.get();
        let is_full_length =
            min_rtt.is_none_or(|min_rtt| ack.now.since(self.cycle.since) > min_rtt);
        let in_network = || self.in_network_at_departure(ack.now, ack.sample.prior_in_flight);
        let gain = self.pacing_gain();
        if gain == Ratio::ONE {
            is_full_length
        } else if gain == PROBE_UP_GAIN {
            let has_losses = ack.sample.newly_lost > 0;
            is_full_length && (has_losses || in_network() >= self.inflight(self.max_bw(), gain))
        } else {
            is_full_length || in_network() <= self.inflight(self.max_bw(), Ratio::ONE)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Settings;
    use crate::sampler::RateSample;
    use crate::script::settings;
    use uncork_units::{Rate, TimeDelta};

    /// A flow of 1 MB/s over 100 ms that began to probe up `age_ms` ago, at an ACK with
    /// `prior_in_flight` bytes in flight and `newly_lost` bytes lost.
    fn is_over(phase: u64, age_ms: u64, prior_in_flight: u64, newly_lost: u64) -> bool {
        let initial_rtt = Some(TimeDelta::from_millis(100));
        let mut bbr = Bbr1::new(&Settings { initial_rtt, ..settings(10) });
        bbr.mode = Mode::ProbeBw;
        bbr.max_bw.reset(0, 1_000_000);
        bbr.pacing_rate = Rate::from_mbit(8);
        bbr.cycle = GainCycle { phase, since: Time::ZERO };
        let sample = RateSample { prior_in_flight, newly_lost, ..RateSample::default() };
        bbr.is_next_phase(&Ack {
            now: Time::ZERO + TimeDelta::from_millis(age_ms),
            sample: &sample,
            in_flight: prior_in_flight,
            oldest_sent: Time::ZERO,
            maybe_delayed: false,
        })
    }

    #[test]
    fn probing_up_ends_at_target_inflight_or_on_loss() {
        assert!(!is_over(0, 100, 200_000, 1_000), "not before min_rtt has passed");
        assert!(!is_over(0, 101, 120_000, 0));
        assert!(is_over(0, 101, 120_000, 1));
        assert!(is_over(0, 101, 140_000, 0));
    }

    #[test]
    fn draining_ends_with_an_empty_queue_or_after_a_round_trip() {
        assert!(!is_over(1, 50, 120_000, 1));
        assert!(is_over(1, 50, 100_000, 0));
        assert!(is_over(1, 101, 120_000, 0));
    }

    #[test]
    fn cruising_lasts_a_round_trip() {
        assert!(!is_over(2, 100, 0, 1_000));
        assert!(is_over(2, 101, 200_000, 0));
    }

    #[test]
    fn cycle_begins_in_any_phase_except_drain() {
        let mut begun = [false; CYCLE_PHASES as usize];
        for seed in 0..200 {
            let now = Time::ZERO;
            let settings = Settings { initial_window: 0, ..Settings::new(1_448, seed, now) };
            let mut bbr = Bbr1::new(&settings);
            bbr.enter_probe_bw(now);
            begun[bbr.cycle.phase as usize] = true;
        }
        assert_eq!(begun, [true, false, true, true, true, true, true, true]);
    }
}
