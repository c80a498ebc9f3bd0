//! Quantiles of many durations, in constant space.

use hdrhistogram::Histogram;

use crate::record::Quantiles;

/// Significant digits kept: a value is off by at most 0.1 %.
const DIGITS: u8 = 3;
/// Values are kept in microseconds, up to 1000 s; what is longer counts as that.
const NANOS_PER_UNIT: u64 = 1_000;
const MAX_UNITS: u64 = 1_000_000_000;

/// A distribution of durations, in 86 kB. Recording one does not allocate. The smallest and the
/// largest are kept exactly, quantiles to three digits.
#[derive(Clone, Debug)]
pub struct Distribution {
    counts: Histogram<u32>,
    min_nanos: u64,
    max_nanos: u64,
}

impl Distribution {
    /// A distribution of nothing yet.
    pub fn new() -> Self {
        let counts = Histogram::new_with_bounds(1, MAX_UNITS, DIGITS);
        Self { counts: counts.expect("the bounds are valid"), min_nanos: u64::MAX, max_nanos: 0 }
    }

    /// Takes in a duration in nanoseconds.
    pub fn record(&mut self, nanos: u64) {
        self.min_nanos = self.min_nanos.min(nanos);
        self.max_nanos = self.max_nanos.max(nanos);
        self.counts.saturating_record((nanos / NANOS_PER_UNIT).min(MAX_UNITS));
    }

    /// Takes in all that `other` took in.
    pub fn merge(&mut self, other: &Self) {
        self.min_nanos = self.min_nanos.min(other.min_nanos);
        self.max_nanos = self.max_nanos.max(other.max_nanos);
        self.counts.add(&other.counts).expect("all distributions have the same bounds");
    }

    /// Durations taken in.
    pub fn count(&self) -> u64 {
        self.counts.len()
    }

    /// Where it lies, in milliseconds; `None` when it is empty.
    pub fn quantiles(&self) -> Option<Quantiles> {
        (self.count() > 0).then(|| Quantiles {
            min: millis(self.min_nanos),
            p50: millis(self.nanos_at(0.5)),
            p95: millis(self.nanos_at(0.95)),
        })
    }

    /// The value that a share of `quantile` does not exceed: the middle of its histogram cell, as
    /// long as that lies within what was recorded.
    fn nanos_at(&self, quantile: f64) -> u64 {
        let cell = self.counts.value_at_quantile(quantile);
        let nanos = self.counts.median_equivalent(cell).saturating_mul(NANOS_PER_UNIT);
        nanos.clamp(self.min_nanos, self.max_nanos)
    }
}

impl Default for Distribution {
    fn default() -> Self {
        Self::new()
    }
}

fn millis(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distribution(nanos: impl IntoIterator<Item = u64>) -> Distribution {
        let mut distribution = Distribution::new();
        nanos.into_iter().for_each(|nanos| distribution.record(nanos));
        distribution
    }

    fn within(value: f64, expected: f64, tolerance: f64) -> bool {
        (value - expected).abs() <= expected * tolerance
    }

    #[test]
    fn nothing_recorded_lies_nowhere() {
        assert_eq!(Distribution::new().quantiles(), None);
    }

    #[test]
    fn a_constant_is_exact() {
        let quantiles = distribution([40_123_456; 1_000]).quantiles();
        let value = 40.123_456;
        assert_eq!(quantiles, Some(Quantiles { min: value, p50: value, p95: value }));
    }

    #[test]
    fn quantiles_are_good_to_a_thousandth() {
        for scale in [1_000, 40_000, 1_000_000, 900_000_000] {
            let quantiles = distribution((1..=1_000).map(|n| n * scale)).quantiles().unwrap();
            let unit = scale as f64 / 1e6;
            assert!(within(quantiles.min, unit, 0.0), "{quantiles:?}");
            assert!(within(quantiles.p50, 500.0 * unit, 0.001), "{quantiles:?}");
            assert!(within(quantiles.p95, 950.0 * unit, 0.001), "{quantiles:?}");
        }
    }

    #[test]
    fn below_a_microsecond_only_the_minimum_is_told_apart() {
        let quantiles = distribution([300, 400, 500]).quantiles().unwrap();
        assert!(within(quantiles.min, 0.000_3, 0.0));
        assert!(quantiles.p50 >= 0.000_3 && quantiles.p95 <= 0.000_5);
    }

    #[test]
    fn zero_and_the_absurd_are_counted() {
        let distribution = distribution([0, 0, 0, u64::MAX]);
        let quantiles = distribution.quantiles().unwrap();
        assert_eq!(distribution.count(), 4);
        assert_eq!((quantiles.min, quantiles.p50), (0.0, 0.0));
        assert!(within(quantiles.p95, 1e6, 0.001), "1000 s: {quantiles:?}");
    }

    #[test]
    fn merging_is_recording_both() {
        let mut merged = distribution((1..500).map(|n| n * 10_000));
        merged.merge(&distribution((500..=1_000).map(|n| n * 10_000)));
        let whole = distribution((1..=1_000).map(|n| n * 10_000));
        assert_eq!(merged.count(), whole.count());
        assert_eq!(merged.quantiles(), whole.quantiles());
    }

    #[test]
    fn it_stays_small() {
        let counters = Distribution::new().counts.distinct_values();
        assert!(counters * size_of::<u32>() < 90_000, "{counters} counters");
    }
}
