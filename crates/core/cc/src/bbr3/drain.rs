//! Drain: draft-ietf-ccwg-bbr-06 §5.3.2.

use uncork_units::{Ratio, Time};

use super::Bbr3;
use super::deviations::Deviation;
use super::params::DRAIN_ROUNDS;
use super::state::State;

impl Bbr3 {
    /// EnterDrain().
    //= bbr-06 5.3.2-1
    pub(super) fn enter_drain(&mut self) {
        self.transition(State::Drain);
        self.drain_start_round = self.round.count() as u8;
    }

    /// CheckDrainDone().
    //= bbr-06 5.3.2-2 5.3.3.9-1
    pub(super) fn check_drain_done(&mut self, now: Time) {
        if self.state == State::Drain
            && (self.sampler.in_flight() <= self.inflight(Ratio::ONE) || self.is_drain_overdue())
        {
            self.start_probe_bw_down(now);
        }
    }

    /// The prose gives Drain three rounds; the pseudocode's `>` waits for a fourth.
    //= bbr-06 5.3.2-3
    fn is_drain_overdue(&self) -> bool {
        if !self.profile.limits_drain() {
            return false;
        }
        let rounds = (self.round.count() as u8).wrapping_sub(self.drain_start_round);
        let limit = DRAIN_ROUNDS + u8::from(!self.deviations.has(Deviation::DrainThreeRounds));
        rounds >= limit
    }
}
