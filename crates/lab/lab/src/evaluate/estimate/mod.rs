//! Statistics of samples with 95 % confidence intervals.
//!
//! Samples come in clusters, such as the flows of one run. Only clusters are independent of each
//! other, so the uncertainty is computed from the differences between them. `coverage.rs` measures
//! how often the intervals contain the true value.

#[cfg(test)]
mod coverage;
mod mean;
mod quantile;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use uncork_report::lab::Estimate;

use super::samples::Sample;
use crate::scenario::Statistic;

/// The 97.5 % quantile of the standard normal distribution.
const Z: f64 = 1.959_963_984_540_054;
/// Minimum clusters for an interval. All of five independent values lie on one side of the true
/// median with a probability of 2 · 2^-5 = 6 %.
const MIN_CLUSTERS: usize = 6;

/// The range of a metric's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Range {
    /// 0 to 1: shares.
    Unit,
    /// Non-negative: times, rates, counts.
    Positive,
}

/// Samples of a metric and the statistic computed from them.
pub(crate) struct Samples {
    /// Values in ascending order with their cluster numbers.
    sorted: Vec<(f64, usize)>,
    clusters: Vec<u64>,
    /// Number of values per cluster.
    sizes: Vec<u64>,
    statistic: Statistic,
    range: Range,
}

/// Uncertainty of a statistic.
struct Spread {
    limits: (f64, f64),
    /// Half of the interval's width on a logarithmic scale.
    relative: f64,
    /// Each cluster's influence on the statistic, in arbitrary units.
    influence: Vec<f64>,
}

impl Samples {
    pub(crate) fn new(samples: &[Sample], statistic: Statistic, range: Range) -> Self {
        let mut numbers: BTreeMap<u64, usize> = BTreeMap::new();
        for sample in samples {
            numbers.insert(sample.cluster, 0);
        }
        for (number, slot) in numbers.values_mut().enumerate() {
            *slot = number;
        }
        let numbered = |sample: &Sample| (sample.value, numbers[&sample.cluster]);
        let mut sorted: Vec<(f64, usize)> = samples.iter().map(numbered).collect();
        sorted.sort_unstable_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        let mut sizes = vec![0; numbers.len()];
        for (_, cluster) in &sorted {
            sizes[*cluster] += 1;
        }
        Self { sorted, clusters: numbers.into_keys().collect(), sizes, statistic, range }
    }

    /// The values in ascending order.
    pub(crate) fn into_values(self) -> Vec<f64> {
        self.sorted.into_iter().map(|(value, _)| value).collect()
    }

    /// How many samples the statistic needs, if there are too few: ten values have no 99th
    /// percentile.
    pub(crate) fn needed(&self) -> Option<u64> {
        let Statistic::Quantile(q) = self.statistic else { return None };
        // Rounded because 1 / (1 - 0.99) is slightly above 100.
        let tail = q.min(1.0 - q);
        let needed = if tail < 0.5 { (1.0 / tail - 1e-6).ceil() as u64 } else { 1 };
        (!self.sorted.is_empty() && (self.sorted.len() as u64) < needed).then_some(needed)
    }

    /// Number of finite samples, and of all samples.
    pub(crate) fn finished(&self) -> (usize, usize) {
        let finite = self.sorted.partition_point(|(value, _)| value.is_finite());
        (finite, self.sorted.len())
    }

    /// The statistic; `None` if there are too few samples or it is infinite.
    pub(crate) fn value(&self) -> Option<f64> {
        if self.sorted.is_empty() || self.needed().is_some() {
            return None;
        }
        let value = match self.statistic {
            Statistic::Mean => self.sum() / self.sorted.len() as f64,
            Statistic::Sum => self.sum() / self.clusters.len() as f64,
            Statistic::Quantile(q) => quantile::of(&self.sorted, q),
        };
        Some(value).filter(|value| value.is_finite())
    }

    fn sum(&self) -> f64 {
        self.sorted.iter().map(|(value, _)| value).sum()
    }

    /// The statistic with its interval.
    pub(crate) fn estimate(&self) -> Option<Estimate> {
        let value = self.value()?;
        let limits = self.spread(value).map(|spread| spread.limits);
        Some(estimate(value, limits, self.sorted.len()))
    }

    /// The interval only. Its upper limit is infinite if too few samples finished.
    pub(crate) fn limits(&self) -> Option<(f64, f64)> {
        match self.statistic {
            Statistic::Quantile(q) if self.clusters.len() >= MIN_CLUSTERS => {
                Some(quantile::spread(self, q)?.limits)
            }
            _ => None,
        }
    }

    /// The quotient of two statistics with its interval.
    ///
    /// On a logarithmic scale it is a difference. Its half-width is computed from those of the two
    /// parts and their correlation over common clusters, such as seeds (MOVER: Zou and Donner,
    /// Statistics in Medicine 2008; for medians Bonett and Price, Journal of Educational and
    /// Behavioral Statistics 2020).
    pub(crate) fn ratio(&self, over: &Self) -> Option<Estimate> {
        let (one, other) = (self.value()?, over.value()?);
        if other == 0.0 {
            return None;
        }
        let value = one / other;
        let limits = self.spread(one).zip(over.spread(other)).and_then(|(one, other)| {
            let (a, b) = (one.relative, other.relative);
            let width = if self.is_apart_from(over) {
                welch((a, self.degrees()), (b, over.degrees()))
            } else {
                let correlation = self.correlation(&one, over, &other);
                (a * a + b * b - 2.0 * correlation * a * b).max(0.0).sqrt()
            };
            let factor = libm::exp(width);
            (value > 0.0 && factor.is_finite()).then(|| (value / factor, value * factor))
        });
        Some(estimate(value, limits, self.sorted.len().min(over.sorted.len())))
    }

    fn spread(&self, value: f64) -> Option<Spread> {
        if self.clusters.len() < MIN_CLUSTERS {
            return None;
        }
        let spread = match self.statistic {
            Statistic::Mean | Statistic::Sum => mean::spread(self, value),
            Statistic::Quantile(q) => quantile::spread(self, q),
        }?;
        (spread.limits.0.is_finite() && spread.limits.1.is_finite()).then_some(spread)
    }

    /// The correlation of two statistics. Clusters that only one side has contribute only to its
    /// variance.
    fn correlation(&self, own: &Spread, over: &Self, other: &Spread) -> f64 {
        let squares = |influence: &[f64]| influence.iter().map(|x| x * x).sum::<f64>();
        let scale = (squares(&own.influence) * squares(&other.influence)).sqrt();
        let products = self.clusters.iter().zip(&own.influence).map(|(cluster, influence)| {
            let common = over.clusters.binary_search(cluster);
            common.map_or(0.0, |place| influence * other.influence[place])
        });
        let products: f64 = products.sum();
        let correlation = if scale > 0.0 { (products / scale).clamp(-1.0, 1.0) } else { 0.0 };
        if self.has_medians_of_ranks() && over.has_medians_of_ranks() {
            quantile::correlation_of_medians(correlation)
        } else {
            correlation
        }
    }

    fn has_medians_of_ranks(&self) -> bool {
        self.statistic == Statistic::Quantile(0.5) && self.is_one_each()
    }

    /// Whether the two have no cluster in common.
    fn is_apart_from(&self, other: &Self) -> bool {
        !self.clusters.iter().any(|cluster| other.clusters.binary_search(cluster).is_ok())
    }

    /// Degrees of freedom of the variance between clusters.
    fn degrees(&self) -> f64 {
        self.clusters.len() as f64 - 1.0
    }

    /// Whether each cluster has exactly one value.
    fn is_one_each(&self) -> bool {
        self.sizes.iter().all(|size| *size == 1)
    }
}

fn estimate(value: f64, limits: Option<(f64, f64)>, n: usize) -> Estimate {
    let (low, high) = limits.unzip();
    Estimate { value, low, high, n: n as u64 }
}

/// Half-width of the interval of a difference of independent values, from the half-widths and
/// degrees of freedom of its parts (Welch, Biometrika 1947).
fn welch((one, degrees): (f64, f64), (other, other_degrees): (f64, f64)) -> f64 {
    let variance = |half: f64, degrees: f64| (half / t_quantile(degrees)).powi(2);
    let (a, b) = (variance(one, degrees), variance(other, other_degrees));
    if a + b == 0.0 {
        return 0.0;
    }
    let combined = (a + b).powi(2) / (a * a / degrees + b * b / other_degrees);
    t_quantile(combined) * (a + b).sqrt()
}

/// The 97.5 % quantile of Student's t distribution with at least five degrees of freedom, to within
/// 0.0003 (Abramowitz and Stegun, 26.7.5).
fn t_quantile(degrees: f64) -> f64 {
    const ZZ: f64 = Z * Z;
    const TERMS: [f64; 4] = [
        (ZZ + 1.0) / 4.0,
        ((5.0 * ZZ + 16.0) * ZZ + 3.0) / 96.0,
        (((3.0 * ZZ + 19.0) * ZZ + 17.0) * ZZ - 15.0) / 384.0,
        ((((79.0 * ZZ + 776.0) * ZZ + 1482.0) * ZZ - 1920.0) * ZZ - 945.0) / 92160.0,
    ];
    let series = TERMS.iter().rev().fold(0.0, |sum, term| (sum + term) / degrees);
    Z * (1.0 + series)
}
