//! Values drawn separately for each client of a population.

use uncork_path::{Buffer, LossSpec};
use uncork_units::{ByteCount, Probability, Rate, Rng, TimeDelta};

/// Draws have the same resolution as probabilities.
const WHOLE: u64 = Probability::ALWAYS.steps();

/// A distribution to draw from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Draw<T> {
    /// Points of the cumulative distribution, from 0 to [`WHOLE`], with interpolation between them.
    Quantiles(Vec<(u64, T)>),
    /// Values with their cumulative weights; the last one is [`WHOLE`].
    Choice(Vec<(u64, T)>),
}

/// Interpolation between two values.
pub(crate) trait Between: Copy {
    /// The value `part` / 2^64 of the way from this one to `other`.
    fn between(self, other: Self, part: u64) -> Self;

    /// Whether interpolation between them is defined.
    fn is_comparable(self, other: Self) -> bool;

    /// Whether this one is at most `other`.
    fn is_ordered(self, other: Self) -> bool;
}

/// Why values are not a valid distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DrawError {
    /// Quantiles do not start at 0 %, end at 100 %, and increase.
    Shares,
    /// The value at this index is smaller than the previous one.
    Order(usize),
    /// The value at this index cannot be interpolated with the previous one.
    Kind(usize),
    /// The weights add up to zero.
    Weights,
}

impl<T: Between> Draw<T> {
    /// From quantiles: (share of values up to this one, value).
    pub(crate) fn quantiles(points: &[(Probability, T)]) -> Result<Self, DrawError> {
        let points: Vec<(u64, T)> =
            points.iter().map(|&(share, value)| (share.steps(), value)).collect();
        let ends = [points.first(), points.last()].map(|end| end.map(|(step, _)| *step));
        let ascend = points.windows(2).all(|pair| pair[0].0 < pair[1].0);
        if ends != [Some(0), Some(WHOLE)] || !ascend {
            return Err(DrawError::Shares);
        }
        for (index, pair) in points.windows(2).enumerate() {
            let [(_, one), (_, other)] = [pair[0], pair[1]];
            if !one.is_comparable(other) {
                return Err(DrawError::Kind(index + 1));
            }
            if !one.is_ordered(other) {
                return Err(DrawError::Order(index + 1));
            }
        }
        Ok(Self::Quantiles(points))
    }

    /// From weighted values: (weight, value).
    pub(crate) fn choice(options: &[(f64, T)]) -> Result<Self, DrawError> {
        let sum: f64 = options.iter().map(|(weight, _)| weight).sum();
        if sum <= 0.0 || !sum.is_finite() {
            return Err(DrawError::Weights);
        }
        let mut below = 0.0;
        let mut up_to = |weight: f64| {
            below += weight;
            ((below / sum) * WHOLE as f64) as u64
        };
        let mut bounds: Vec<(u64, T)> =
            options.iter().map(|&(weight, value)| (up_to(weight), value)).collect();
        if let Some((last, _)) = bounds.last_mut() {
            *last = WHOLE;
        }
        Ok(Self::Choice(bounds))
    }

    /// Draws a value with one number from `rng`. Never `None`, because distributions are not empty.
    pub(crate) fn sample(&self, rng: &mut Rng) -> Option<T> {
        let step = rng.below(WHOLE);
        match self {
            Self::Choice(bounds) => {
                let found = bounds.iter().find(|(up_to, _)| step < *up_to);
                found.map(|(_, value)| *value)
            }
            Self::Quantiles(points) => {
                let after = points.partition_point(|(share, _)| *share <= step);
                let [(low, one), (high, other)] = [points.get(after - 1)?, points.get(after)?];
                let part = (u128::from(step - low) << 64) / u128::from(high - low);
                Some(one.between(*other, part as u64))
            }
        }
    }

    /// The smallest and the largest possible value.
    pub(crate) fn extremes(&self) -> Option<[T; 2]> {
        let (Self::Quantiles(points) | Self::Choice(points)) = self;
        let values = || points.iter().map(|(_, value)| *value);
        let least =
            values().reduce(|least, value| if value.is_ordered(least) { value } else { least });
        let most = values().reduce(|most, value| if most.is_ordered(value) { value } else { most });
        Some([least?, most?])
    }
}

/// `part` / 2^64 of the way from `low` to `high`, on a logarithmic scale.
fn log_between(low: u64, high: u64, part: u64) -> u64 {
    let [from, to] = [low, high].map(|end| libm::log(end as f64));
    let way = part as f64 / 2_f64.powi(64) * (to - from);
    (libm::exp(from + way).round() as u64).max(low).min(high)
}

impl Between for Rate {
    fn between(self, other: Self, part: u64) -> Self {
        Self::from_bytes_per_sec(log_between(self.bytes_per_sec(), other.bytes_per_sec(), part))
    }

    fn is_comparable(self, other: Self) -> bool {
        !self.is_zero() && !other.is_zero()
    }

    fn is_ordered(self, other: Self) -> bool {
        self <= other
    }
}

impl Between for TimeDelta {
    fn between(self, other: Self, part: u64) -> Self {
        Self::from_nanos(log_between(self.as_nanos(), other.as_nanos(), part))
    }

    fn is_comparable(self, other: Self) -> bool {
        !self.is_zero() && !other.is_zero()
    }

    fn is_ordered(self, other: Self) -> bool {
        self <= other
    }
}

/// Linear, because loss may be zero. Only for independent (Bernoulli) losses.
impl Between for LossSpec {
    fn between(self, other: Self, part: u64) -> Self {
        match (self, other) {
            (Self::Bernoulli(low), Self::Bernoulli(high)) => {
                let span = u128::from(high.steps().saturating_sub(low.steps()));
                let steps = low.steps() + ((span * u128::from(part)) >> 64) as u64;
                Self::Bernoulli(Probability::of(steps, Probability::ALWAYS.steps()))
            }
            _ => self,
        }
    }

    fn is_comparable(self, other: Self) -> bool {
        matches!((self, other), (Self::Bernoulli(_), Self::Bernoulli(_)))
    }

    fn is_ordered(self, other: Self) -> bool {
        match (self, other) {
            (Self::Bernoulli(low), Self::Bernoulli(high)) => low <= high,
            _ => true,
        }
    }
}

/// The number of a buffer size without its unit.
fn amount(buffer: Buffer) -> u64 {
    match buffer {
        Buffer::Bytes(bytes) => bytes.as_u64(),
        Buffer::Packets(n) | Buffer::MilliBdp(n) => n,
    }
}

impl Between for Buffer {
    fn between(self, other: Self, part: u64) -> Self {
        let amount = log_between(amount(self), amount(other), part);
        match self {
            Self::Bytes(_) => Self::Bytes(ByteCount::new(amount)),
            Self::Packets(_) => Self::Packets(amount),
            Self::MilliBdp(_) => Self::MilliBdp(amount),
        }
    }

    fn is_comparable(self, other: Self) -> bool {
        let same = std::mem::discriminant(&self) == std::mem::discriminant(&other);
        same && amount(self) > 0 && amount(other) > 0
    }

    fn is_ordered(self, other: Self) -> bool {
        amount(self) <= amount(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn p(text: &str) -> Probability {
        text.parse().unwrap()
    }

    #[test]
    fn middle_of_a_logarithmic_scale_is_the_geometric_mean() {
        assert_eq!(log_between(1_000, 1_000_000, 1 << 63), 31_623);
        assert_eq!(log_between(100, 10_000, 1 << 63), 1_000);
        // A quarter of three decades: 10^(3 + 0.75).
        assert_eq!(log_between(1_000, 1_000_000, 1 << 62), 5_623);
        assert_eq!(log_between(7, 7, u64::MAX), 7);
        assert_eq!(log_between(1, u64::MAX, 0), 1);
        let most = log_between(1, u64::MAX, u64::MAX);
        assert!(most > u64::MAX / 100 * 99, "{most}");
    }

    /// Between 1 and 8 Mbit/s, half of the draws are below the geometric mean of 2.83 Mbit/s, and
    /// none are out of range. Four standard deviations of 10 000 draws are 200.
    #[test]
    fn draws_match_the_quantiles() {
        let [low, middle, high] = [1_000_000, 2_828_427, 8_000_000].map(Rate::from_bits_per_sec);
        let draw = Draw::quantiles(&[(p("0%"), low), (p("100%"), high)]).unwrap();
        let mut rng = Rng::new(1, 2);
        let rates: Vec<Rate> = (0..10_000).filter_map(|_| draw.sample(&mut rng)).collect();
        assert_eq!(rates.len(), 10_000);
        assert!(rates.iter().all(|rate| (low..=high).contains(rate)));
        let below = rates.iter().filter(|rate| **rate < middle).count();
        assert!(below.abs_diff(5_000) < 200, "{below}");
    }

    #[test]
    fn choices_follow_their_weights() {
        let [none, some] = ["0%", "1%"].map(|text| LossSpec::Bernoulli(p(text)));
        let draw = Draw::choice(&[(0.7, none), (0.3, some)]).unwrap();
        let mut rng = Rng::new(1, 2);
        let drawn: Vec<_> = (0..10_000).filter_map(|_| draw.sample(&mut rng)).collect();
        assert_eq!(drawn.len(), 10_000);
        let lossy = drawn.iter().filter(|loss| **loss == some).count();
        // Four standard deviations: 4 · sqrt(10 000 · 0.3 · 0.7).
        assert!(lossy.abs_diff(3_000) < 184, "{lossy}");
    }

    #[test]
    fn loss_between_points_is_linear() {
        let [none, most] = ["0%", "4%"].map(|text| LossSpec::Bernoulli(p(text)));
        assert_eq!(none.between(most, 1 << 62), LossSpec::Bernoulli(p("1%")));
    }

    #[test]
    fn invalid_distributions_are_rejected() {
        let rate = Rate::from_mbit;
        let quantiles = |points: &[(&str, u64)]| {
            let points: Vec<_> =
                points.iter().map(|&(share, mbit)| (p(share), rate(mbit))).collect();
            Draw::quantiles(&points).unwrap_err()
        };
        assert_eq!(quantiles(&[]), DrawError::Shares);
        assert_eq!(quantiles(&[("0%", 1), ("99%", 2)]), DrawError::Shares);
        assert_eq!(quantiles(&[("0%", 1), ("0%", 2), ("100%", 3)]), DrawError::Shares);
        assert_eq!(quantiles(&[("0%", 2), ("100%", 1)]), DrawError::Order(1));
        assert_eq!(quantiles(&[("0%", 0), ("100%", 1)]), DrawError::Kind(1));
        assert_eq!(Draw::choice(&[(0.0, rate(1))]).unwrap_err(), DrawError::Weights);
    }
}
