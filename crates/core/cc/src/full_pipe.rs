//! The full-pipe estimator of both versions of BBR: draft-ietf-ccwg-bbr-06 §5.3.1.2,
//! draft-cardwell-iccrg-bbr-congestion-control-00 §4.3.2.2.

use uncork_units::Rate;
use uncork_units::wide::saturating_mul;

/// Rounds without growth after which the pipe counts as full.
//= bbr-06 5.3.1.2-4
const FULL_BW_ROUNDS: u8 = 3;

/// Detects a plateau of the delivery rate while the sender accelerates.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FullPipe {
    /// BBR.full_bw: the rate that growth is measured against.
    baseline: Rate,
    /// BBR.full_bw_count: rounds since then without 25 % growth.
    rounds: u8,
    /// BBR.full_bw_now: the pipe is full since the last restart.
    now: bool,
    /// BBR.full_bw_reached: the pipe was full at some point in the connection.
    reached: bool,
}

impl FullPipe {
    /// BBR.full_bw_now.
    pub(crate) fn is_full_now(&self) -> bool {
        self.now
    }

    /// BBR.full_bw_reached.
    pub(crate) fn reached(&self) -> bool {
        self.reached
    }

    /// ResetFullBW(), measuring growth from `baseline`.
    //= bbr-06 5.3.1.2-1
    pub(crate) fn restart(&mut self, baseline: Rate) {
        *self = Self { baseline, reached: self.reached, ..Self::default() };
    }

    /// Packet loss shows that the pipe is full (§5.3.1.3). Appendix A.2 expects both flags.
    pub(crate) fn declare_full(&mut self) {
        self.now = true;
        self.reached = true;
    }

    /// The loss was spurious: the pipe was not full.
    pub(crate) fn retract(&mut self) {
        *self = Self::default();
    }

    /// CheckFullBWReached() at the start of a round with a sample that is not application-limited.
    /// `rate` is the delivery rate of the round; in BBRv1, the maximum over all rounds.
    //= bbr-06 5.3.1.2-3 5.3.1.2-4
    pub(crate) fn on_round(&mut self, rate: Rate) {
        if self.now {
            return;
        }
        let grown = saturating_mul(rate.bytes_per_sec(), 4)
            >= saturating_mul(self.baseline.bytes_per_sec(), 5);
        if grown {
            self.restart(rate);
            return;
        }
        self.rounds += 1;
        self.now = self.rounds >= FULL_BW_ROUNDS;
        self.reached |= self.now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mbit(n: u64) -> Rate {
        Rate::from_mbit(n)
    }

    #[test]
    //= bbr-06 5.3.1.2-4 test
    fn three_rounds_with_less_than_25_percent_growth_fill_the_pipe() {
        let mut pipe = FullPipe::default();
        for rate in [10, 20, 40, 49, 49] {
            pipe.on_round(mbit(rate));
        }
        assert!(!pipe.is_full_now());
        pipe.on_round(mbit(49));
        assert!(pipe.is_full_now() && pipe.reached());
    }

    #[test]
    //= bbr-06 5.3.1.2-3 test
    fn exactly_25_percent_growth_restarts_the_count() {
        let mut pipe = FullPipe::default();
        for rate in [40, 40, 40, 50, 50, 50] {
            pipe.on_round(mbit(rate));
        }
        assert!(!pipe.is_full_now());
    }

    #[test]
    //= bbr-06 5.3.1.2-1 test
    fn restart_clears_now_but_not_reached() {
        let mut pipe = FullPipe::default();
        pipe.declare_full();
        pipe.restart(mbit(10));
        assert!(!pipe.is_full_now() && pipe.reached());
        pipe.retract();
        assert!(!pipe.reached());
    }
}
