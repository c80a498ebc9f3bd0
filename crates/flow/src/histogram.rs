//! Quantiles of many durations, in constant space.

use hdrhistogram::Histogram;

use crate::record::Quantiles;

/// Significant digits kept: a value is off by at most 0.1 %.
const DIGITS: u8 = 3;
/// Values are kept in microseconds, up to 1000 s; what is longer counts as that.
const NANOS_PER_UNIT: u64 = 1_000;
const MAX_UNITS: u64 = 1_000_000_000;

/// A distribution of durations. Recording one neither allocates nor forgets.
#[derive(Clone, Debug)]
pub struct Distribution {
    counts: Histogram<u32>,
    min_nanos: u64,
}

impl Distribution {
    /// A distribution of nothing yet.
    pub fn new() -> Self {
        let counts = Histogram::new_with_bounds(1, MAX_UNITS, DIGITS);
        Self { counts: counts.expect("the bounds are valid"), min_nanos: u64::MAX }
    }

    /// Takes in a duration in nanoseconds.
    pub fn record(&mut self, nanos: u64) {
        self.min_nanos = self.min_nanos.min(nanos);
        self.counts.saturating_record((nanos / NANOS_PER_UNIT).min(MAX_UNITS));
    }

    /// Durations taken in.
    pub fn count(&self) -> u64 {
        self.counts.len()
    }

    /// Where it lies, in milliseconds; `None` when it is empty.
    pub fn quantiles(&self) -> Option<Quantiles> {
        let millis = |nanos: u64| nanos as f64 / 1e6;
        let at = |quantile| millis(self.counts.value_at_quantile(quantile) * NANOS_PER_UNIT);
        (self.count() > 0).then(|| Quantiles {
            min: millis(self.min_nanos),
            p50: at(0.5),
            p95: at(0.95),
        })
    }
}

impl Default for Distribution {
    fn default() -> Self {
        Self::new()
    }
}
