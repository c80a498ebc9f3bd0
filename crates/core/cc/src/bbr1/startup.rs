//! Startup and Drain: draft-00 §4.3.2 and §4.3.3.

use uncork_units::Ratio;

use super::{Ack, Bbr1, Mode};

impl Bbr1 {
    pub(super) fn check_full_pipe(&mut self, ack: &Ack<'_>) {
        let counts = self.round.started() && !ack.sample.is_app_limited;
        if counts && !self.full_pipe.reached() {
            self.full_pipe.on_round(self.max_bw());
        }
    }

    /// Leaves Startup once the pipe is full, and Drain once the queue is gone.
    pub(super) fn check_drain(&mut self, ack: &Ack<'_>) {
        if self.mode == Mode::Startup && self.full_pipe.reached() {
            self.mode = Mode::Drain;
        }
        let drained = || {
            self.in_network_at_departure(ack.now, ack.in_flight)
                <= self.inflight(self.max_bw(), Ratio::ONE)
        };
        if self.mode == Mode::Drain && drained() {
            self.enter_probe_bw(ack.now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uncork_units::Rate;

    use crate::Controller;
    use crate::script::{Host, settings};

    /// A flow with 20 packets in flight after two rounds of plateau.
    fn two_rounds_of_plateau() -> Host<Bbr1> {
        let mut host = Host::new(Bbr1::new(&settings(20)));
        host.fill();
        for _ in 0..3 {
            host.cc.full_pipe.on_round(Rate::from_mbit(10));
        }
        assert!(!host.cc.full_pipe.reached());
        host
    }

    #[test]
    fn timeout_makes_the_next_round_count_as_growth() {
        let mut host = two_rounds_of_plateau();
        host.time_out();
        host.cc.full_pipe.on_round(Rate::from_mbit(1));
        assert!(!host.cc.full_pipe.reached());
    }

    #[test]
    fn spurious_losses_restart_the_plateau_count() {
        let mut host = two_rounds_of_plateau();
        host.lose(2);
        let missing = host.missing();
        host.cc.on_spurious(host.now, &missing);
        for _ in 0..3 {
            host.cc.full_pipe.on_round(Rate::from_mbit(10));
            assert!(!host.cc.full_pipe.reached());
        }
    }
}
