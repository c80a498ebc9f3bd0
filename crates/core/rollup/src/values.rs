//! What a row counts. All of it adds up.

use crate::metric::{Metric, Ratio};

/// How often a metric was in a bin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BinCount {
    pub(crate) metric: Metric,
    pub(crate) bin: i32,
    pub(crate) count: u64,
}

/// The counts of a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Values {
    pub(crate) records: u64,
    /// Acknowledged payload.
    pub(crate) bytes: u64,
    /// Numerators and denominators, by [`Ratio`].
    pub(crate) sums: [(u64, u64); Ratio::ALL.len()],
    /// In the order of metric and bin, each once.
    pub(crate) bins: Vec<BinCount>,
}

impl Values {
    pub(crate) fn add_bin(&mut self, metric: Metric, bin: i32, count: u64) {
        match self.bins.binary_search_by_key(&(metric, bin), |it| (it.metric, it.bin)) {
            Ok(place) => add(&mut self.bins[place].count, count),
            Err(place) => self.bins.insert(place, BinCount { metric, bin, count }),
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        add(&mut self.records, other.records);
        add(&mut self.bytes, other.bytes);
        for (sum, of) in self.sums.iter_mut().zip(other.sums) {
            add(&mut sum.0, of.0);
            add(&mut sum.1, of.1);
        }
        for bin in &other.bins {
            self.add_bin(bin.metric, bin.bin, bin.count);
        }
    }
}

/// Addition that stays associative at the end of the range.
pub(crate) fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}
