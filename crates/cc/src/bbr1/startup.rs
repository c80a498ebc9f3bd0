//! Startup and Drain: draft-00 §4.3.2 and §4.3.3.

use uncork_units::Rate;

use super::params::{FULL_BW_GROWTH, FULL_BW_ROUNDS};
use super::{Ack, Bbr1, Mode};

/// Tells from a plateau of the bandwidth that the pipe is full (draft-00 §4.3.2.2).
#[derive(Clone, Debug, Default)]
pub(super) struct FullPipe {
    baseline: Rate,
    rounds: u32,
    reached: bool,
}

impl FullPipe {
    /// Whether the pipe was found to be full, once for the life of the path.
    pub(super) fn is_reached(&self) -> bool {
        self.reached
    }

    /// A round without an application limit went by with this max_bw.
    fn on_round(&mut self, max_bw: Rate) {
        if max_bw >= self.baseline.scaled(FULL_BW_GROWTH) {
            self.baseline = max_bw;
            self.rounds = 0;
            return;
        }
        self.rounds += 1;
        self.reached = self.rounds >= FULL_BW_ROUNDS;
    }

    /// A timeout: whatever is delivered next is growth.
    pub(super) fn forget_bw(&mut self) {
        self.baseline = Rate::ZERO;
    }

    /// The slowdown was spurious: look for the plateau anew.
    pub(super) fn restart(&mut self) {
        self.baseline = Rate::ZERO;
        self.rounds = 0;
    }
}

impl Bbr1 {
    pub(super) fn check_full_pipe(&mut self, ack: &Ack) {
        let counts = self.round.started() && !ack.sample.is_app_limited;
        if counts && !self.full_pipe.is_reached() {
            self.full_pipe.on_round(self.max_bw());
        }
    }

    /// Leaves Startup once the pipe is full, and Drain once the queue is gone.
    pub(super) fn check_drain(&mut self, ack: &Ack) {
        if self.mode == Mode::Startup && self.full_pipe.is_reached() {
            self.mode = Mode::Drain;
        }
        let drained = || {
            self.in_network_at_departure(ack.now, ack.in_flight)
                <= self.inflight(self.max_bw(), uncork_units::Ratio::ONE)
        };
        if self.mode == Mode::Drain && drained() {
            self.enter_probe_bw(ack.now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Controller;
    use crate::script::{Host, settings};

    fn after_rounds(rates: &[u64]) -> bool {
        let mut pipe = FullPipe::default();
        for &rate in rates {
            pipe.on_round(Rate::from_bytes_per_sec(rate));
        }
        pipe.is_reached()
    }

    #[test]
    fn three_rounds_below_a_quarter_of_growth_fill_the_pipe() {
        assert!(!after_rounds(&[100, 200, 249, 249]));
        assert!(after_rounds(&[100, 200, 249, 249, 249]));
    }

    #[test]
    fn growth_by_a_quarter_starts_the_count_again() {
        assert!(!after_rounds(&[100, 110, 120, 125, 130, 140]));
    }

    /// A flow with 20 packets in flight that has seen two rounds of plateau.
    fn two_rounds_of_plateau() -> Host<Bbr1> {
        let mut host = Host::new(Bbr1::new(&settings(20)));
        host.fill();
        for _ in 0..3 {
            host.cc.full_pipe.on_round(Rate::from_mbit(10));
        }
        assert_eq!(host.cc.full_pipe.rounds, 2);
        host
    }

    #[test]
    fn a_timeout_makes_the_next_round_count_as_growth() {
        let mut host = two_rounds_of_plateau();
        host.time_out();
        host.cc.full_pipe.on_round(Rate::from_mbit(1));
        assert_eq!(host.cc.full_pipe.rounds, 0);
        assert!(!host.cc.full_pipe.is_reached());
    }

    #[test]
    fn spurious_losses_make_the_plateau_count_from_the_start() {
        let mut host = two_rounds_of_plateau();
        host.lose(2);
        let missing = host.missing();
        host.cc.on_spurious(host.now, &missing);
        assert_eq!((host.cc.full_pipe.rounds, host.cc.full_pipe.baseline), (0, Rate::ZERO));
    }
}
