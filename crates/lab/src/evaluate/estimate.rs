//! Numbers of a distribution, and how sure they are.

use std::collections::BTreeMap;

use uncork_report::lab::Estimate;
use uncork_units::Rng;

use super::samples::Sample;
use crate::scenario::Statistic;

/// Resamples drawn for an interval.
const RESAMPLES: usize = 1_000;
/// Share of the resamples on either side of a 95 % interval.
const TAIL: f64 = 0.025;
/// Clusters from which an interval can be had: of five independent values both sides of the true
/// median are missed with a probability of 2 · 2^-5 = 6 % or more.
const MIN_CLUSTERS: usize = 6;

/// Samples of a metric, to be drawn anew as clusters (Efron, Annals of Statistics 1979; clusters as a
/// whole: Davison and Hinkley 1997, §3.8).
pub(crate) struct Samples {
    /// Values in rising order, each with the number of its cluster.
    sorted: Vec<(f64, usize)>,
    clusters: Vec<u64>,
    /// Values of each cluster.
    sizes: Vec<u64>,
    statistic: Statistic,
}

impl Samples {
    pub(crate) fn new(samples: &[Sample], statistic: Statistic) -> Self {
        let mut numbers: BTreeMap<u64, usize> = BTreeMap::new();
        for sample in samples {
            numbers.insert(sample.cluster, 0);
        }
        for (number, slot) in numbers.values_mut().enumerate() {
            *slot = number;
        }
        let numbered = |sample: &Sample| (sample.value, numbers[&sample.cluster]);
        let mut sorted: Vec<(f64, usize)> = samples.iter().map(numbered).collect();
        sorted.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
        let mut sizes = vec![0; numbers.len()];
        for (_, cluster) in &sorted {
            sizes[*cluster] += 1;
        }
        Self { sorted, clusters: numbers.into_keys().collect(), sizes, statistic }
    }

    /// The values in rising order.
    pub(crate) fn into_values(self) -> Vec<f64> {
        self.sorted.into_iter().map(|(value, _)| value).collect()
    }

    /// The number itself; `None` when there is nothing, or when it is not finite.
    pub(crate) fn value(&self) -> Option<f64> {
        self.drawn(&vec![1; self.clusters.len()])
    }

    /// The number when each cluster is there so many times.
    fn drawn(&self, times: &[u32]) -> Option<f64> {
        let count: u64 = self.sizes.iter().zip(times).map(|(n, times)| n * u64::from(*times)).sum();
        let weights =
            self.sorted.iter().map(|(value, cluster)| (*value, u64::from(times[*cluster])));
        let value = match self.statistic {
            Statistic::Mean => weighted_sum(weights) / count as f64,
            Statistic::Sum => {
                let clusters: u64 = times.iter().map(|times| u64::from(*times)).sum();
                weighted_sum(weights) / clusters as f64
            }
            Statistic::Quantile(quantile) => weighted_quantile(weights, count, quantile)?,
        };
        Some(value).filter(|value| value.is_finite())
    }

    /// The number with its 95 % interval.
    pub(crate) fn estimate(&self, rng: &mut Rng) -> Option<Estimate> {
        let value = self.value()?;
        let mut times = vec![0_u32; self.clusters.len()];
        let interval = interval(self.clusters.len(), || {
            times.fill(0);
            draw(times.len(), rng, |cluster| times[cluster] += 1);
            self.drawn(&times)
        });
        Some(estimate(value, interval, self.sorted.len()))
    }

    /// The quotient of two numbers with its 95 % interval. Clusters that both have, such as seeds, are
    /// drawn together: what is common to both does not widen the interval. Those that only one of them
    /// has are drawn apart (strata: Davison and Hinkley 1997, §3.2).
    pub(crate) fn ratio(&self, over: &Self, rng: &mut Rng) -> Option<Estimate> {
        let value = quotient(self.value()?, over.value()?)?;
        let (common, alone, others) = self.strata(over);
        let mut own = vec![0_u32; self.clusters.len()];
        let mut other = vec![0_u32; over.clusters.len()];
        let interval = interval(own.len().min(other.len()), || {
            own.fill(0);
            other.fill(0);
            draw(common.len(), rng, |nth| {
                own[common[nth].0] += 1;
                other[common[nth].1] += 1;
            });
            draw(alone.len(), rng, |nth| own[alone[nth]] += 1);
            draw(others.len(), rng, |nth| other[others[nth]] += 1);
            Some(self.drawn(&own)? / over.drawn(&other)?)
        });
        Some(estimate(value, interval, self.sorted.len().min(over.sorted.len())))
    }

    /// The clusters that both have, with their numbers here and there; those that only this has; and
    /// those that only `over` has.
    fn strata(&self, over: &Self) -> (Vec<(usize, usize)>, Vec<usize>, Vec<usize>) {
        let (mut common, mut alone) = (Vec::new(), Vec::new());
        for (own, cluster) in self.clusters.iter().enumerate() {
            match over.clusters.binary_search(cluster) {
                Ok(other) => common.push((own, other)),
                Err(_) => alone.push(own),
            }
        }
        let clusters = over.clusters.iter().enumerate();
        let others = clusters.filter(|(_, cluster)| self.clusters.binary_search(cluster).is_err());
        (common, alone, others.map(|(other, _)| other).collect())
    }
}

/// Draws one of `count` as often as there are.
fn draw(count: usize, rng: &mut Rng, mut drawn: impl FnMut(usize)) {
    for _ in 0..count {
        drawn(rng.below(count as u64) as usize);
    }
}

/// The middle 95 % of what `resample` gives, for a number of `clusters`.
fn interval(clusters: usize, resample: impl FnMut() -> Option<f64>) -> Option<(f64, f64)> {
    if clusters < MIN_CLUSTERS {
        return None;
    }
    let values = std::iter::repeat_with(resample).take(RESAMPLES);
    let values: Vec<f64> = values.flatten().filter(|value| value.is_finite()).collect();
    // Where a number cannot be had from most resamples, nor can an interval.
    if values.len() < RESAMPLES * 95 / 100 {
        return None;
    }
    Some((uncork_flow::quantile(&values, TAIL)?, uncork_flow::quantile(&values, 1.0 - TAIL)?))
}

fn estimate(value: f64, interval: Option<(f64, f64)>, n: usize) -> Estimate {
    Estimate {
        value,
        low: interval.map(|(low, _)| low),
        high: interval.map(|(_, high)| high),
        n: n as u64,
    }
}

fn quotient(one: f64, other: f64) -> Option<f64> {
    (other != 0.0).then(|| one / other)
}

fn weighted_sum(values: impl Iterator<Item = (f64, u64)>) -> f64 {
    // No infinity of no weight.
    values.filter(|(_, weight)| *weight > 0).map(|(value, weight)| value * weight as f64).sum()
}

/// Type 7 of Hyndman and Fan (The American Statistician 1996), as of [`uncork_flow::quantile`], with
/// each of the sorted values there `weight` times, `count` in all.
fn weighted_quantile(
    sorted: impl Iterator<Item = (f64, u64)>,
    count: u64,
    quantile: f64,
) -> Option<f64> {
    let position = count.checked_sub(1)? as f64 * quantile.clamp(0.0, 1.0);
    let (below, above) = (position.floor() as u64, position.ceil() as u64);
    let (mut seen, mut low) = (0, None);
    for (value, weight) in sorted {
        seen += weight;
        if low.is_none() && seen > below {
            low = Some(value);
        }
        if seen > above {
            let low = low?;
            let step = if low.total_cmp(&value).is_eq() { 0.0 } else { value - low };
            return Some(low + step * position.fract());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f64], statistic: Statistic) -> Samples {
        let samples: Vec<Sample> =
            (0..).zip(values).map(|(cluster, value)| Sample { cluster, value: *value }).collect();
        Samples::new(&samples, statistic)
    }

    fn normal(seed: u64, count: usize) -> Vec<f64> {
        let mut rng = Rng::new(seed, 0);
        let mut uniform = move || rng.below(1 << 30) as f64 / f64::from(1 << 30);
        (0..count).map(|_| (0..12).map(|_| uniform()).sum::<f64>()).collect()
    }

    #[test]
    fn numbers_are_those_of_plain_statistics() {
        let values = [3.0, 1.0, 2.0, 10.0];
        for quantile in [0.0, 0.1, 0.5, 0.9, 1.0] {
            assert_eq!(
                of(&values, Statistic::Quantile(quantile)).value(),
                uncork_flow::quantile(&values, quantile)
            );
        }
        assert_eq!(of(&values, Statistic::Mean).value(), Some(4.0));
        assert_eq!(of(&[], Statistic::Mean).value(), None);
    }

    #[test]
    fn what_never_ended_is_beyond_all_that_did() {
        let values = [1.0, 2.0, f64::INFINITY];
        assert_eq!(of(&values, Statistic::Quantile(0.5)).value(), Some(2.0));
        assert_eq!(of(&values, Statistic::Quantile(0.9)).value(), None);
        assert_eq!(of(&values, Statistic::Mean).value(), None);
    }

    #[test]
    fn sums_are_of_a_cluster() {
        let samples = [(1, 2.0), (1, 3.0), (2, 5.0), (2, 0.0)];
        let samples = samples.map(|(cluster, value)| Sample { cluster, value });
        assert_eq!(Samples::new(&samples, Statistic::Sum).value(), Some(5.0));
    }

    /// Of 400 samples of 20 values the intervals hold the true median, 6, in 95 % or so.
    #[test]
    fn intervals_hold_the_truth_as_often_as_they_say() {
        let held = (0..400).filter(|seed| {
            let samples = of(&normal(*seed, 20), Statistic::Quantile(0.5));
            let estimate = samples.estimate(&mut Rng::new(*seed, 1)).expect("values");
            estimate.low.expect("enough") <= 6.0 && 6.0 <= estimate.high.expect("enough")
        });
        let held = held.count();
        assert!((366..=392).contains(&held), "{held} of 400");
    }

    /// Ten equal values from each of eight clusters say no more than one of each.
    #[test]
    fn a_cluster_counts_once() {
        let values = normal(7, 8);
        let once = of(&values, Statistic::Mean).estimate(&mut Rng::new(1, 1)).expect("values");
        let samples: Vec<Sample> =
            (0..80_usize).map(|n| Sample { cluster: n as u64 % 8, value: values[n % 8] }).collect();
        let tenfold = Samples::new(&samples, Statistic::Mean);
        let tenfold = tenfold.estimate(&mut Rng::new(1, 1)).expect("values");
        for (one, ten) in [(once.low, tenfold.low), (once.high, tenfold.high)] {
            assert!((one.expect("enough") - ten.expect("enough")).abs() < 1e-9);
        }
    }

    #[test]
    fn few_clusters_have_no_interval() {
        let estimate = of(&[1.0, 2.0, 3.0, 4.0, 5.0], Statistic::Quantile(0.5));
        let estimate = estimate.estimate(&mut Rng::new(1, 1)).expect("values");
        assert_eq!((estimate.value, estimate.low, estimate.n), (3.0, None, 5));
    }

    /// Both have the same noise: their quotient is certain, though neither of them is.
    #[test]
    fn common_noise_does_not_blur_a_ratio() {
        let noise = normal(3, 12);
        let twice: Vec<f64> = noise.iter().map(|value| 2.0 * value).collect();
        let median = Statistic::Quantile(0.5);
        let ratio = of(&twice, median).ratio(&of(&noise, median), &mut Rng::new(1, 1));
        let ratio = ratio.expect("values");
        assert!((ratio.low.expect("enough") - 2.0).abs() < 1e-9);
        assert!((ratio.high.expect("enough") - 2.0).abs() < 1e-9);
    }

    /// Two independent halves of a population have an interval, too: the median of twenty values has
    /// a standard deviation of some 0.28, so the quotient of two, 6 over 6, one of 0.066.
    #[test]
    fn a_ratio_of_what_has_nothing_in_common_is_uncertain() {
        let half = |seed: u64| {
            let values = normal(seed, 20);
            let sample = |(n, value): (u64, f64)| Sample { cluster: 100 * seed + n, value };
            let samples: Vec<Sample> = (0..).zip(values).map(sample).collect();
            Samples::new(&samples, Statistic::Quantile(0.5))
        };
        let held = (0..400).filter(|seed| {
            let ratio = half(2 * seed).ratio(&half(2 * seed + 1), &mut Rng::new(*seed, 1));
            let ratio = ratio.expect("values");
            ratio.low.expect("enough") <= 1.0 && 1.0 <= ratio.high.expect("enough")
        });
        let held = held.count();
        assert!((366..=396).contains(&held), "{held} of 400");
    }

    /// A seed in which one side has nothing takes no interval away.
    #[test]
    fn a_cluster_of_one_side_alone_is_drawn_alone() {
        let noise = normal(3, 12);
        let twice: Vec<f64> = noise.iter().take(11).map(|value| 2.0 * value).collect();
        let mean = Statistic::Mean;
        let ratio = of(&twice, mean).ratio(&of(&noise, mean), &mut Rng::new(1, 1)).expect("values");
        let width = ratio.high.expect("enough") - ratio.low.expect("enough");
        assert!(width > 1e-3 && width < 0.3, "{width}");
    }
}
