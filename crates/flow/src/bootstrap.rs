//! How sure a comparison of two medians is.

use uncork_units::Rng;

use crate::stats::{quantile, quantile_of_sorted};

/// Resamples drawn for an interval.
const RESAMPLES: usize = 2_000;
/// Share of the resamples on either side of the interval.
const TAIL: f64 = 0.025;

/// How many times as large the median of one sample is as that of another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MedianRatio {
    /// The ratio of the medians.
    pub ratio: f64,
    /// The 95 % confidence interval of that ratio; `None` with fewer pairs than
    /// [`MedianRatio::MIN_PAIRS`].
    pub interval: Option<(f64, f64)>,
}

impl MedianRatio {
    /// Pairs from which an interval can be had. Of five values or fewer, both sides of the true median
    /// are missed with a probability of 2 · 2^-5 = 6 % or more: no interval within their range
    /// deserves to be called a 95 % interval.
    pub const MIN_PAIRS: usize = 6;

    /// The ratio of the median first member to the median second member of `pairs`, with a
    /// percentile-bootstrap interval (Efron, Annals of Statistics 1979) from 2000 resamples.
    ///
    /// Pairs are drawn as a whole, because their members share something, such as the seed that
    /// decides which packets are lost; what is common to both then does not widen the interval. The
    /// pairs must be independent of each other and stand for what is to be known: seeds of a
    /// simulation speak of that simulated path, not of paths in general. Measured on
    /// evenly spread samples of 6, 10 and 20 pairs, the interval held the truth in 95 to 97 % of 400
    /// trials. It speaks of medians, not of single transfers.
    ///
    /// `None` without pairs or if the second median is not above zero. Equal seeds of `rng` give
    /// equal intervals.
    pub fn of(pairs: &[(f64, f64)], rng: &mut Rng) -> Option<Self> {
        let (firsts, seconds): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
        let (first, second) = (quantile(&firsts, 0.5)?, quantile(&seconds, 0.5)?);
        (second > 0.0).then(|| Self { ratio: first / second, interval: interval(pairs, rng) })
    }
}

fn interval(pairs: &[(f64, f64)], rng: &mut Rng) -> Option<(f64, f64)> {
    if pairs.len() < MedianRatio::MIN_PAIRS {
        return None;
    }
    let mut resample = Resample::default();
    let mut ratios: Vec<f64> = (0..RESAMPLES).filter_map(|_| resample.ratio(pairs, rng)).collect();
    ratios.sort_unstable_by(f64::total_cmp);
    Some((quantile_of_sorted(&ratios, TAIL)?, quantile_of_sorted(&ratios, 1.0 - TAIL)?))
}

/// Room for one resample after the other.
#[derive(Default)]
struct Resample {
    firsts: Vec<f64>,
    seconds: Vec<f64>,
}

impl Resample {
    /// The ratio of medians of as many pairs, drawn with replacement.
    fn ratio(&mut self, pairs: &[(f64, f64)], rng: &mut Rng) -> Option<f64> {
        self.firsts.clear();
        self.seconds.clear();
        for _ in pairs {
            let (first, second) = pairs[rng.below(pairs.len() as u64) as usize];
            self.firsts.push(first);
            self.seconds.push(second);
        }
        self.firsts.sort_unstable_by(f64::total_cmp);
        self.seconds.sort_unstable_by(f64::total_cmp);
        let second = quantile_of_sorted(&self.seconds, 0.5)?;
        Some(quantile_of_sorted(&self.firsts, 0.5)? / second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `count` pairs whose members lie evenly within ±`spread` of 10·`noise` and 5·`noise`, where the
    /// noise that both share spreads likewise by `shared`.
    fn pairs(count: usize, spread: f64, shared: f64, rng: &mut Rng) -> Vec<(f64, f64)> {
        let mut around_one = |spread: f64| 1.0 + spread * (rng.below(2_000_001) as f64 / 1e6 - 1.0);
        let mut pair = || {
            let noise = around_one(shared);
            (10.0 * noise * around_one(spread), 5.0 * noise * around_one(spread))
        };
        (0..count).map(|_| pair()).collect()
    }

    fn of(pairs: &[(f64, f64)]) -> Option<MedianRatio> {
        MedianRatio::of(pairs, &mut Rng::new(1, 0))
    }

    #[test]
    fn one_seed_gives_a_ratio_without_interval() {
        assert_eq!(of(&[(6.0, 3.0)]), Some(MedianRatio { ratio: 2.0, interval: None }));
    }

    #[test]
    fn without_pairs_or_with_nothing_to_divide_by_there_is_no_ratio() {
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[(1.0, 0.0)]), None);
    }

    #[test]
    fn an_interval_takes_six_pairs() {
        let pairs = pairs(6, 0.1, 0.0, &mut Rng::new(3, 0));
        assert_eq!(of(&pairs[..5]).unwrap().interval, None);
        assert!(of(&pairs).unwrap().interval.is_some());
    }

    #[test]
    fn equal_samples_have_the_ratio_one_for_sure() {
        let pairs: Vec<_> = (1..=10).map(|n| (f64::from(n), f64::from(n))).collect();
        assert_eq!(of(&pairs), Some(MedianRatio { ratio: 1.0, interval: Some((1.0, 1.0)) }));
    }

    #[test]
    fn equal_seeds_give_equal_intervals() {
        let pairs = pairs(12, 0.3, 0.0, &mut Rng::new(3, 0));
        assert_eq!(of(&pairs), of(&pairs));
        assert_ne!(of(&pairs), MedianRatio::of(&pairs, &mut Rng::new(2, 0)));
    }

    #[test]
    fn what_both_share_does_not_widen_the_interval() {
        let width = |pairs: &[(f64, f64)]| {
            let (low, high) = of(pairs).unwrap().interval.unwrap();
            high - low
        };
        let mut paired = pairs(21, 0.01, 0.4, &mut Rng::new(9, 0));
        let together = width(&paired);
        let seconds: Vec<f64> = paired.iter().rev().map(|pair| pair.1).collect();
        paired.iter_mut().zip(seconds).for_each(|(pair, second)| pair.1 = second);
        assert!(together * 3.0 < width(&paired), "{together} against {}", width(&paired));
    }

    #[test]
    fn the_truth_is_inside_about_as_often_as_promised() {
        let mut rng = Rng::new(11, 0);
        for count in [6, 10, 20] {
            let covers = |pairs: &[(f64, f64)], rng: &mut Rng| {
                let (low, high) = MedianRatio::of(pairs, rng).unwrap().interval.unwrap();
                low <= 2.0 && 2.0 <= high
            };
            let trials: Vec<_> = (0..400).map(|_| pairs(count, 0.3, 0.2, &mut rng)).collect();
            let covered = trials.iter().filter(|pairs| covers(pairs, &mut rng)).count();
            assert!((368..=396).contains(&covered), "{count} pairs: {covered} of 400");
        }
    }
}
