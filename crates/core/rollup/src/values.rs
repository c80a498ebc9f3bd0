//! What a row counts. All of it adds up.

use crate::metric::{Metric, Ratio};

/// How often a metric was in a bin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BinCount {
    pub(crate) metric: Metric,
    pub(crate) bin: i32,
    pub(crate) count: u64,
}

impl BinCount {
    pub(crate) const fn key(&self) -> (Metric, i32) {
        (self.metric, self.bin)
    }
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
        self.add_bins(&other.bins);
    }

    /// Adds bins that are in order. New ones go to the end first, so that each is moved once.
    fn add_bins(&mut self, more: &[BinCount]) {
        let (before, mut place) = (self.bins.len(), 0);
        for it in more {
            place += self.bins[place..before].partition_point(|own| own.key() < it.key());
            match self.bins[..before].get_mut(place) {
                Some(own) if own.key() == it.key() => add(&mut own.count, it.count),
                _ => self.bins.push(*it),
            }
        }
        if self.bins.len() > before {
            self.bins.sort_by_key(BinCount::key);
        }
    }
}

/// Addition that stays associative at the end of the range.
pub(crate) fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}
