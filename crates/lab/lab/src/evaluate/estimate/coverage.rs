//! Coverage: how often the 95 % intervals contain the true value.

use uncork_units::Rng;

use super::*;

/// Repetitions per case: the standard error of the measured coverage is 0.5 percentage points.
const TRIALS: u64 = 2000;
const COVERAGE: std::ops::RangeInclusive<f64> = 0.93..=0.97;
const MEDIAN: Statistic = Statistic::Quantile(0.5);
const P90: Statistic = Statistic::Quantile(0.9);
const P99: Statistic = Statistic::Quantile(0.99);
/// Quantiles of the standard normal distribution.
const Z90: f64 = 1.281_551_565_544_6;
const Z99: f64 = 2.326_347_874_040_8;

struct CoverageSource(Rng);

impl CoverageSource {
    fn uniform(&mut self) -> f64 {
        (self.0.below(1 << 53) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    fn exponential(&mut self) -> f64 {
        -self.uniform().ln()
    }

    /// Box and Muller, Annals of Mathematical Statistics 1958.
    fn normal(&mut self) -> f64 {
        (2.0 * self.exponential()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }

    fn log_normal(&mut self) -> f64 {
        (0.5 * self.normal()).exp()
    }

    fn poisson(&mut self, mean: f64) -> f64 {
        let mut count = 0.0;
        let mut time = self.exponential();
        while time < mean {
            count += 1.0;
            time += self.exponential();
        }
        count
    }

    /// `size` correlated normal values around `middle` in each of `clusters`. `common` is the share
    /// of the variance that is common to a cluster.
    fn clusters(&mut self, (clusters, size): (u64, u64), common: f64, middle: f64) -> Vec<Sample> {
        let mut samples = Vec::new();
        for cluster in 0..clusters {
            let shift = middle + common.sqrt() * self.normal();
            for _ in 0..size {
                samples
                    .push(Sample { cluster, value: shift + (1.0 - common).sqrt() * self.normal() });
            }
        }
        samples
    }

    /// Independent values.
    fn singles(&mut self, count: u64, mut value: impl FnMut(&mut Self) -> f64) -> Vec<Sample> {
        (0..count).map(|cluster| Sample { cluster, value: value(self) }).collect()
    }

    /// Log-normal values for the same seeds. Their logarithms share the fraction `common` of their
    /// variance.
    fn pairs(&mut self, count: u64, common: f64) -> (Vec<Sample>, Vec<Sample>) {
        let mut one = Vec::new();
        let mut other = Vec::new();
        for cluster in 0..count {
            let shift = common.sqrt() * self.normal();
            for side in [&mut one, &mut other] {
                let value = (0.3 * (shift + (1.0 - common).sqrt() * self.normal())).exp();
                side.push(Sample { cluster, value });
            }
        }
        (one, other)
    }
}

/// Asserts that the intervals of `case` cover `truth`.
fn assert_coverage(name: &str, truth: f64, case: impl Fn(&mut CoverageSource) -> Option<Estimate>) {
    let (mut trials, mut held) = (0_u64, 0_u64);
    for trial in 0..TRIALS {
        let Some(estimate) = case(&mut CoverageSource(Rng::new(trial, 1))) else { continue };
        let Some((low, high)) = estimate.low.zip(estimate.high) else { continue };
        trials += 1;
        held += u64::from(low <= truth && truth <= high);
    }
    let share = held as f64 / trials as f64;
    println!("{name}: {:.1} % of {trials}", 100.0 * share);
    assert!(trials >= 500, "{name}: only {trials} intervals");
    assert!(COVERAGE.contains(&share), "{name}: {share} of {trials}");
}

fn mean(samples: &[Sample], range: Range) -> Option<Estimate> {
    Samples::new(samples, Statistic::Mean, range).estimate()
}

fn quantile(samples: &[Sample], statistic: Statistic) -> Option<Estimate> {
    Samples::new(samples, statistic, Range::Positive).estimate()
}

fn ratio((one, other): &(Vec<Sample>, Vec<Sample>), statistic: Statistic) -> Option<Estimate> {
    let samples = |samples: &[Sample]| Samples::new(samples, statistic, Range::Positive);
    samples(one).ratio(&samples(other))
}

#[test]
fn intervals_of_means_cover_the_true_value() {
    use Range::{Positive, Unit};
    for n in [6, 8, 10, 20] {
        let name = |what: &str| format!("mean of {n} {what}");
        assert_coverage(&name("normal"), 10.0, |source| {
            mean(&source.singles(n, |source| 10.0 + 2.0 * source.normal()), Positive)
        });
        assert_coverage(&name("log-normal"), 0.125_f64.exp(), |source| {
            mean(&source.singles(n, CoverageSource::log_normal), Positive)
        });
        assert_coverage(&name("counts"), 4.0, |source| {
            mean(&source.singles(n, |source| source.poisson(4.0)), Positive)
        });
        assert_coverage(&name("skewed counts"), 2.0, |source| {
            let count = |source: &mut CoverageSource| {
                let mean = 2.0 * source.exponential();
                source.poisson(mean)
            };
            mean(&source.singles(n, count), Positive)
        });
        // Shares just below 1 are skewed in the other direction.
        assert_coverage(&name("utilisations"), 0.95, |source| {
            mean(&source.singles(n, |source| 1.0 - 0.05 * source.exponential()), Unit)
        });
        assert_coverage(&name("clusters"), 10.0, |source| {
            mean(&source.clusters((n, 20), 0.3, 10.0), Positive)
        });
    }
}

#[test]
fn intervals_of_independent_quantiles_cover_the_true_value() {
    for n in [6, 7, 10, 20, 200] {
        assert_coverage(&format!("median of {n}"), 1.0, |source| {
            quantile(&source.singles(n, CoverageSource::log_normal), MEDIAN)
        });
    }
    for n in [36, 60, 300, 1000] {
        assert_coverage(&format!("p90 of {n}"), (0.5 * Z90).exp(), |source| {
            quantile(&source.singles(n, CoverageSource::log_normal), P90)
        });
    }
    for n in [400, 1000] {
        assert_coverage(&format!("p99 of {n}"), (0.5 * Z99).exp(), |source| {
            quantile(&source.singles(n, CoverageSource::log_normal), P99)
        });
    }
}

#[test]
fn intervals_of_clustered_quantiles_cover_the_true_value() {
    for (clusters, size, common) in [(6, 20, 0.3), (10, 20, 0.0), (10, 10, 0.2), (20, 60, 0.1)] {
        let name = format!("{clusters} clusters of {size}, {common} common");
        assert_coverage(&format!("median of {name}"), 10.0, |source| {
            quantile(&source.clusters((clusters, size), common, 10.0), MEDIAN)
        });
    }
    for (clusters, size, common) in [(8, 60, 0.1), (10, 60, 0.0), (20, 60, 0.2)] {
        let name = format!("{clusters} clusters of {size}, {common} common");
        assert_coverage(&format!("p90 of {name}"), 10.0 + Z90, |source| {
            quantile(&source.clusters((clusters, size), common, 10.0), P90)
        });
    }
    for (clusters, size, common) in [(8, 220, 0.05), (20, 100, 0.0)] {
        let name = format!("{clusters} clusters of {size}, {common} common");
        assert_coverage(&format!("p99 of {name}"), 10.0 + Z99, |source| {
            quantile(&source.clusters((clusters, size), common, 10.0), P99)
        });
    }
}

#[test]
fn intervals_of_ratios_cover_the_true_value() {
    for n in [6, 8, 10, 20] {
        for common in [0.0, 0.5, 0.8] {
            let name = |what: &str| format!("ratio of {what} of {n} pairs, {common} common");
            assert_coverage(&name("means"), 1.0, |source| {
                ratio(&source.pairs(n, common), Statistic::Mean)
            });
            assert_coverage(&name("medians"), 1.0, |source| {
                ratio(&source.pairs(n, common), MEDIAN)
            });
        }
        for statistic in [Statistic::Mean, MEDIAN] {
            assert_coverage(&format!("ratio of {statistic:?} of {n}, unpaired"), 1.0, |source| {
                let (one, mut other) = source.pairs(n, 0.0);
                for sample in &mut other {
                    sample.cluster += 1000;
                }
                ratio(&(one, other), statistic)
            });
        }
    }
    let clusters = |source: &mut CoverageSource, common| {
        (source.clusters((10, 60), common, 10.0), source.clusters((10, 60), common, 10.0))
    };
    for common in [0.0, 0.2] {
        assert_coverage(&format!("ratio of medians of clusters, {common} common"), 1.0, |source| {
            ratio(&clusters(source, common), MEDIAN)
        });
        assert_coverage(&format!("ratio of p90s of clusters, {common} common"), 1.0, |source| {
            ratio(&clusters(source, common), P90)
        });
    }
}
