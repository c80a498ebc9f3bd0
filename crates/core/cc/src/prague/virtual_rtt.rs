//! Reduced RTT dependence, §2.4.4: flows respond as if all had the same round-trip time.

use uncork_units::TimeDelta;
use uncork_units::wide::saturating_mul;

use crate::event::RttSample;

/// RTT_VIRT: round trips shorter than this respond as one of this length.
pub(super) const REFERENCE_RTT: TimeDelta = TimeDelta::from_millis(25);
/// Up to this round-trip time, flows grow as fast as one of [`REFERENCE_RTT`].
const MAX_SCALED_RTT: TimeDelta = TimeDelta::from_millis(100);
/// Round trips after slow start in which a flow still responds by its own round-trip time.
const TRANSITION_ROUNDS: u32 = 4;

/// Segments per round trip, in 2⁻²⁴: a ten-thousandth of that of [`REFERENCE_RTT`] still has three digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Growth(u32);

impl Growth {
    pub(super) const BITS: u32 = 24;
    /// A segment per round trip.
    const ONE: Self = Self(1 << Self::BITS);

    /// `value` times this growth, in 2⁻²⁴.
    pub(super) fn of(self, value: u64) -> u64 {
        saturating_mul(value, u64::from(self.0))
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct VirtualRtt {
    smoothed: TimeDelta,
    /// The round trip in which slow start ended.
    started: u32,
    round: u32,
}

impl VirtualRtt {
    pub(super) fn new(initial_rtt: Option<TimeDelta>) -> Self {
        Self { smoothed: initial_rtt.unwrap_or(TimeDelta::ZERO), started: 0, round: 0 }
    }

    pub(super) fn on_sample(&mut self, rtt: RttSample, round: u64, is_starting: bool) {
        self.smoothed = rtt.smoothed;
        self.round = round as u32;
        if is_starting {
            self.started = self.round;
        }
    }

    /// The smoothed round-trip time.
    pub(super) fn smoothed(&self) -> TimeDelta {
        self.smoothed
    }

    /// Whether the flow is old enough to give up the advantage of a short round trip.
    //= prague-04 2.4.4-3
    fn is_independent(&self) -> bool {
        self.round.wrapping_sub(self.started) >= TRANSITION_ROUNDS
    }

    /// How often alpha is updated and the window reduced, at most.
    //= prague-04 2.4.4-1
    pub(super) fn virtual_rtt(&self) -> TimeDelta {
        if self.is_independent() { self.smoothed.max(REFERENCE_RTT) } else { self.smoothed }
    }

    /// Segments by which the window grows per round trip. With reductions once per virtual round trip, the rate is
    /// then 2 (1 - p) / p segments per [`REFERENCE_RTT`] for a share p of marks at any round-trip time.
    //= prague-04 2.4.4-2 2.4.4-4
    //= rfc9331 4.3-7
    pub(super) fn growth(&self) -> Growth {
        if !self.is_independent() {
            return Growth::ONE;
        }
        let rtt = self.smoothed.min(MAX_SCALED_RTT).as_micros();
        let reference = REFERENCE_RTT.as_micros();
        Growth(if rtt < reference {
            ((rtt * rtt) << Growth::BITS) / (reference * reference)
        } else {
            (rtt << Growth::BITS) / reference
        } as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(rounds: u64, millis: u64) -> VirtualRtt {
        let rtt = TimeDelta::from_millis(millis);
        let sample = RttSample { latest: rtt, smoothed: rtt, min: rtt };
        let mut virtual_rtt = VirtualRtt::new(None);
        virtual_rtt.on_sample(sample, 7, true);
        virtual_rtt.on_sample(sample, 7 + rounds, false);
        virtual_rtt
    }

    #[test]
    //= prague-04 2.4.4-3 test
    fn flow_responds_by_its_own_rtt_for_four_rounds() {
        let young = after(3, 5);
        assert_eq!((young.virtual_rtt(), young.growth()), (TimeDelta::from_millis(5), Growth::ONE));
        assert_eq!(after(4, 5).virtual_rtt(), REFERENCE_RTT);
    }

    #[test]
    //= prague-04 2.4.4-2 2.4.4-4 test
    fn growth_per_round_trip_compensates_for_the_rtt() {
        let thousand = |millis| after(4, millis).growth().of(1_000) >> Growth::BITS;
        assert_eq!([5, 25, 50, 100, 400].map(thousand), [39, 1_000, 2_000, 4_000, 4_000]);
        assert_eq!(after(4, 400).virtual_rtt(), TimeDelta::from_millis(400));
    }

    /// In a data centre: the square of a hundredth is small, but not zero.
    #[test]
    //= prague-04 2.4.4-2 test
    fn growth_of_a_short_round_trip_is_the_square_of_its_share() {
        for micros in [20, 50, 100, 390, 600, 1_000] {
            let rtt = TimeDelta::from_micros(micros);
            let sample = RttSample { latest: rtt, smoothed: rtt, min: rtt };
            let mut virtual_rtt = VirtualRtt::new(None);
            virtual_rtt.on_sample(sample, TRANSITION_ROUNDS.into(), false);
            let expected = 1_000_000_000 * micros * micros / (25_000 * 25_000);
            let growth = virtual_rtt.growth().of(1_000_000_000) >> Growth::BITS;
            assert!(
                growth.abs_diff(expected) <= expected / 10,
                "{micros} us: {growth}, not {expected}"
            );
        }
    }
}
