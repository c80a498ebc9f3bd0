//! The bounds that congestion sets on the model: draft-ietf-ccwg-bbr-06 §2.9.

use uncork_units::Rate;

use super::params::{BETA, HEADROOM};

/// The draft's "Infinity" for a volume of data.
pub(super) const UNBOUNDED: u64 = u64::MAX;

/// Short-term and long-term bounds; unset ones are infinite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    /// BBR.bw_shortterm.
    pub(super) bw_shortterm: Rate,
    /// BBR.inflight_shortterm.
    pub(super) inflight_shortterm: u64,
    /// BBR.inflight_longterm.
    pub(super) inflight_longterm: u64,
}

/// The deliveries of the last round, and the initial values of unset bounds.
#[derive(Clone, Copy, Debug)]
pub(super) struct LossRound {
    /// BBR.max_bw.
    pub(super) max_bw: Rate,
    /// C.cwnd.
    pub(super) cwnd: u64,
    /// BBR.bw_latest.
    pub(super) bw_latest: Rate,
    /// BBR.inflight_latest.
    pub(super) inflight_latest: u64,
}

impl Bounds {
    /// No bounds.
    pub(super) const NONE: Self = Self {
        bw_shortterm: Rate::MAX,
        inflight_shortterm: UNBOUNDED,
        inflight_longterm: UNBOUNDED,
    };

    /// ResetShortTermModel().
    //= bbr-06 5.5.10.3-8
    pub(super) fn reset_short_term(&mut self) {
        *self = Self { inflight_longterm: self.inflight_longterm, ..Self::NONE };
    }

    /// InitLowerBounds(), §5.5.10.3: the short-term bounds of bandwidth and inflight, or what they
    /// start from.
    pub(super) fn short_term(&self, round: &LossRound) -> (Rate, u64) {
        let bw = if self.bw_shortterm == Rate::MAX { round.max_bw } else { self.bw_shortterm };
        let inflight = match self.inflight_shortterm {
            UNBOUNDED => round.cwnd,
            bound => bound,
        };
        (bw, inflight)
    }

    /// Lowers the short-term bounds to these.
    pub(super) fn limit_short_term(&mut self, (bw, inflight): (Rate, u64)) {
        self.bw_shortterm = self.bw_shortterm.min(bw);
        self.inflight_shortterm = self.inflight_shortterm.min(inflight);
    }

    /// LossLowerBounds(), §5.5.10.3: after a round with loss, reduces the
    /// bounds to what was delivered, but by no more than a factor of Beta.
    //= bbr-06 5.5.10.3-6 5.5.10.3-7
    pub(super) fn reduce_short_term(&mut self, round: LossRound) {
        let (bw, inflight) = self.short_term(&round);
        self.bw_shortterm = round.bw_latest.max(bw.scaled(BETA));
        self.inflight_shortterm = round.inflight_latest.max(BETA.of(inflight));
    }

    /// InflightWithHeadroom(), §5.3.3.9: leaves room for other flows below the long-term bound.
    //= bbr-06 5.3.3.9-12
    pub(super) fn inflight_with_headroom(&self, mss: u64, min_pipe: u64) -> u64 {
        if self.inflight_longterm == UNBOUNDED {
            return UNBOUNDED;
        }
        let headroom = HEADROOM.of(self.inflight_longterm).max(mss);
        self.inflight_longterm.saturating_sub(headroom).max(min_pipe)
    }

    /// Sets each bound to the larger of the two.
    //= bbr-06 5.5.11.2-4
    pub(super) fn widen_to(&mut self, other: &Self) {
        self.bw_shortterm = self.bw_shortterm.max(other.bw_shortterm);
        self.inflight_shortterm = self.inflight_shortterm.max(other.inflight_shortterm);
        self.inflight_longterm = self.inflight_longterm.max(other.inflight_longterm);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND: LossRound = LossRound {
        max_bw: Rate::from_mbit(100),
        cwnd: 100_000,
        bw_latest: Rate::from_mbit(90),
        inflight_latest: 50_000,
    };

    #[test]
    //= bbr-06 2.8-2 5.5.10.3-6 5.5.10.3-7 test
    fn bounds_fall_to_what_was_delivered_but_not_below_beta() {
        let mut bounds = Bounds::NONE;
        bounds.reduce_short_term(ROUND);
        assert_eq!(bounds.bw_shortterm, Rate::from_mbit(90));
        assert_eq!(bounds.inflight_shortterm, 70_000);
        bounds.reduce_short_term(LossRound { bw_latest: Rate::ZERO, ..ROUND });
        assert_eq!(bounds.bw_shortterm, Rate::from_mbit(63));
        assert_eq!(bounds.inflight_shortterm, 50_000);
    }

    #[test]
    //= bbr-06 2.8-3 5.3.3.9-12 test
    fn headroom_is_at_least_15_percent_and_one_packet() {
        let of = |inflight_longterm| {
            Bounds { inflight_longterm, ..Bounds::NONE }.inflight_with_headroom(1_000, 4_000)
        };
        assert_eq!(of(100_000), 85_000);
        assert_eq!(of(6_000), 5_000);
        assert_eq!(of(4_500), 4_000);
        assert_eq!(of(UNBOUNDED), UNBOUNDED);
    }

    #[test]
    //= bbr-06 5.5.10.3-8 test
    fn short_term_reset_keeps_the_long_term_bound() {
        let mut bounds = Bounds { inflight_longterm: 9, ..Bounds::NONE };
        bounds.reduce_short_term(ROUND);
        bounds.reset_short_term();
        assert_eq!(bounds, Bounds { inflight_longterm: 9, ..Bounds::NONE });
    }
}
