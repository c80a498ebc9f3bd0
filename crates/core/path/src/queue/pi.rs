//! Shared by PIE and PI2: fixed-point probabilities, the gains of a proportional-integral
//! controller, and its update times.

use uncork_units::{Rng, Time, TimeDelta};

use super::params::Param;
use super::{Gain, QueueError};

/// A probability in steps of 2^-60 (8.7e-19), or a sum of probabilities below 16. One controller
/// update has an error below one step, so a day of updates every 15 ms has an error of 5e-12.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Likelihood(u64);

const STEPS: u64 = 1 << 60;

impl Likelihood {
    /// Probability 0.
    pub(super) const ZERO: Self = Self(0);
    /// Probability 1.
    pub(super) const ONE: Self = Self(STEPS);

    /// `n` millionths.
    pub(super) const fn millionths(n: u64) -> Self {
        Self((STEPS as u128 * n as u128 / 1_000_000) as u64)
    }

    /// Increased by `steps`, limited to 0 to 1.
    pub(super) fn moved(self, steps: i128) -> Self {
        let moved = (i128::from(self.0) + steps).clamp(0, i128::from(STEPS));
        Self(moved as u64)
    }

    /// The fraction `num` / `den` of it; the fraction is at most 1.
    pub(super) fn scaled(self, num: u64, den: u64) -> Self {
        let scaled = u128::from(self.0) * u128::from(num) / u128::from(den.max(1));
        Self(scaled.min(u128::from(STEPS)) as u64)
    }

    /// The probability that two independent events both happen.
    pub(super) const fn squared(self) -> Self {
        Self(((self.0 as u128 * self.0 as u128) >> 60) as u64)
    }

    /// The sum, which may exceed 1.
    pub(super) const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The remainder after subtraction.
    pub(super) const fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Draws whether the event happens. Exact: out of 2^60 equally likely numbers, it is true for
    /// as many as the likelihood has steps.
    pub(super) const fn happens(self, rng: &mut Rng) -> bool {
        rng.next_u64() >> 4 < self.0
    }

    #[cfg(test)]
    pub(super) fn as_f64(self) -> f64 {
        self.0 as f64 / STEPS as f64
    }
}

/// The gains of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gains {
    /// Gain for the error (integral).
    pub(super) alpha: Gain,
    /// Gain for the change (proportional).
    pub(super) beta: Gain,
}

impl Gains {
    /// The change of the probability in steps of [`Likelihood`], divided by `divisor`, when the
    /// delay changes from `previous` to `current` with a target of `target`. Rounded towards 0.
    pub(super) fn steps(
        self,
        current: TimeDelta,
        previous: TimeDelta,
        target: TimeDelta,
        divisor: u32,
    ) -> i128 {
        let nanos = |span: TimeDelta| i128::from(span.as_nanos());
        let integral = i128::from(self.alpha.as_millihertz()) * (nanos(current) - nanos(target));
        let proportional =
            i128::from(self.beta.as_millihertz()) * (nanos(current) - nanos(previous));
        // In units of 10^-12. Clamping to 2^62 keeps the product below 2^122 and does not change
        // the result, because even 1/2048 of it exceeds the whole range of a probability.
        let sum = (integral + proportional).clamp(-(1 << 62), 1 << 62);
        sum * i128::from(STEPS) / (1_000_000_000_000 * i128::from(divisor.max(1)))
    }
}

/// Parses a gain.
pub(super) fn gain(param: &Param<'_>) -> Result<Gain, QueueError> {
    let range = Gain::from_millihertz(1)..=Gain::from_millihertz(1_000_000);
    param.read(&range, "a gain from 0.001 to 1000 hertz, such as 0.125")
}

/// Parses a target or a controller's period.
pub(super) fn period(param: &Param<'_>) -> Result<TimeDelta, QueueError> {
    let range = TimeDelta::from_micros(100)..=TimeDelta::from_secs(10);
    param.read(&range, "a time from 100us to 10s, such as 15ms")
}

/// The update times of a controller: multiples of its period. It has no timer; due updates are
/// performed when the queue is next used, before anything else. The result is the same, because
/// only the time changes in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UpdateSchedule {
    period: TimeDelta,
    next: Time,
}

impl UpdateSchedule {
    /// The first update is due after one period, which must not be 0.
    pub(super) fn every(period: TimeDelta) -> Self {
        Self { period, next: Time::ZERO + period }
    }

    /// Calls `update` with the queueing delay at each instant due by `now`. The queue's oldest
    /// packet arrived at `head`.
    ///
    /// `update` returns whether the controller is settled: further updates with a delay that has
    /// not fallen would change only its record of the last delay. In that case all due updates
    /// except the last are skipped. That limits the work after a pause: the probability of an empty
    /// queue reaches 0, and that of a blocked one reaches 1, in a number of updates that depends
    /// only on the parameters (see the callers).
    pub(super) fn make_up(
        &mut self,
        now: Time,
        head: Option<Time>,
        mut update: impl FnMut(TimeDelta) -> bool,
    ) {
        while self.next <= now && self.next < Time::NEVER {
            let delay = head.map_or(TimeDelta::ZERO, |since| self.next.since(since));
            let settled = update(delay);
            self.next += self.period;
            if settled {
                self.skip_to_last(now);
            }
        }
    }

    /// Skips to the last instant due by `now`.
    fn skip_to_last(&mut self, now: Time) {
        let ahead = now.since(self.next).as_nanos() / self.period.as_nanos().max(1);
        self.next += self.period.times(ahead);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gains(alpha: u32, beta: u32) -> Gains {
        Gains { alpha: Gain::from_millihertz(alpha), beta: Gain::from_millihertz(beta) }
    }

    #[test]
    fn likelihood_is_drawn_at_its_rate() {
        let mut rng = Rng::new(1, 0);
        assert!((0..1000).all(|_| Likelihood::ONE.happens(&mut rng)));
        assert!((0..1000).all(|_| !Likelihood::ZERO.happens(&mut rng)));
        let hits = (0..1_000_000).filter(|_| Likelihood::millionths(50_000).happens(&mut rng));
        // Four standard deviations of sqrt(10^6 · 0.05 · 0.95) = 218.
        assert!(hits.count().abs_diff(50_000) < 872);
    }

    #[test]
    fn arithmetic_stays_in_range() {
        let half = Likelihood::millionths(500_000);
        assert_eq!(half.squared(), Likelihood::millionths(250_000));
        assert_eq!(half.scaled(3, 1), Likelihood::ONE);
        assert_eq!(half.moved(i128::from(STEPS)), Likelihood::ONE);
        assert_eq!(half.moved(-i128::from(STEPS)), Likelihood::ZERO);
        assert_eq!(half.plus(half).minus(half), half);
    }

    /// 1/8 Hz · 5 ms + 5/4 Hz · 8 ms = 0.010625; the negated input gives the negated result.
    #[test]
    fn gains_weigh_the_error_and_the_change() {
        let gains = gains(125, 1250);
        let ms = TimeDelta::from_millis;
        let up = gains.steps(ms(20), ms(12), ms(15), 1);
        assert_eq!(up, i128::from(STEPS) * 10_625 / 1_000_000);
        assert_eq!(gains.steps(ms(10), ms(18), ms(15), 1), -up);
        assert_eq!(gains.steps(ms(20), ms(12), ms(15), 32), up / 32);
    }

    #[test]
    fn absurd_delays_saturate() {
        let gains = gains(u32::MAX, u32::MAX);
        let rise = gains.steps(TimeDelta::MAX, TimeDelta::ZERO, TimeDelta::ZERO, 2048);
        assert_eq!(Likelihood::ZERO.moved(rise), Likelihood::ONE);
        let fall = gains.steps(TimeDelta::ZERO, TimeDelta::MAX, TimeDelta::ZERO, 2048);
        assert_eq!(Likelihood::ONE.moved(fall), Likelihood::ZERO);
    }

    #[test]
    fn delayed_updates_use_their_due_times() {
        let ms = |ms| Time::ZERO + TimeDelta::from_millis(ms);
        let mut updates = UpdateSchedule::every(TimeDelta::from_millis(15));
        let mut delays = Vec::new();
        let mut run = |now, head, settled| {
            updates.make_up(now, head, |delay| {
                delays.push(delay.as_nanos() / 1_000_000);
                settled
            });
        };
        run(ms(14), Some(ms(10)), false);
        run(ms(45), Some(ms(10)), false);
        run(ms(59), Some(ms(40)), false);
        run(ms(76), None, false);
        // Due at 90, 105, 120, … 990.
        run(ms(1000), Some(ms(80)), true);
        run(Time::NEVER, Some(ms(990)), true);
        assert_eq!(delays[..7], [5, 20, 35, 0, 0, 10, 910]);
        assert_eq!(delays[7], 15);
    }
}
