//! A synthetic mobile link.
//!
//! The rate is log-normal and its logarithm a first-order autoregression. In decibels, shadowing is
//! about normal with an autocorrelation about exponential in the distance travelled (M. Gudmundson,
//! "Correlation model for shadow fading in mobile radio systems", Electronics Letters 27(23),
//! 1991), and thus in time at a constant speed. The rate of a link that adapts its modulation is
//! assumed to be proportional. Outages, as at handovers, are memoryless with exponential lengths,
//! like those of the model behind Sprout (K. Winstein, A. Sivaraman, H. Balakrishnan, NSDI 2013),
//! with its tick of 20 ms.
//!
//! Not modelled: fast fading within a step, the scheduler's grants (a mahimahi trace has them), the
//! drift of a whole drive through good and bad cells, and link-layer retransmissions. Comparison
//! with sixteen measured links, sampled each second (`tests/measured_traces.rs` prints the table):
//! their coefficient of variation is 0.08 to 0.62, and their correlation falls to 1/e after 1 to 95
//! s (3G on commutes: 1 to 14 s). After twice that time it is −0.16 to 0.40, compared with 0.14 in
//! this model.

use uncork_units::{Rate, Ratio, Rng, TimeDelta};

use super::Trace;
use crate::LinkSpec;

/// A mobile link. Durations are rounded to whole [`LteSpec::STEP`]s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LteSpec {
    /// Mean rate, excluding outages.
    pub mean: Rate,
    /// Coefficient of variation of the rate, excluding outages: standard deviation over mean.
    pub variation: Ratio,
    /// Time after which the autocorrelation of the rate's logarithm is 1/e.
    pub correlation: TimeDelta,
    /// Mean time from the end of one outage to the next; zero for no outages.
    pub outage_every: TimeDelta,
    /// Mean length of an outage.
    pub outage: TimeDelta,
    /// Length of the generated trace, after which it repeats.
    pub length: TimeDelta,
}

/// Why a specification is not a valid mobile link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LteError {
    /// The mean rate is out of range.
    #[error("a mean rate of {} is out of range; expected {} to {}", .0, LinkSpec::RATES.0, LinkSpec::RATES.1)]
    Mean(Rate),
    /// The variation is too large.
    #[error(
        "a variation of {} is out of range; the limit is {}",
        .0.as_f64(),
        LteSpec::MAX_VARIATION.as_f64()
    )]
    Variation(Ratio),
    /// The correlation time is out of range.
    #[error(
        "a correlation time of {} is out of range; expected {} to {}",
        .0, LteSpec::CORRELATIONS.0,
        LteSpec::CORRELATIONS.1
    )]
    Correlation(TimeDelta),
    /// Outages, or the gaps between them, are shorter than a step.
    #[error("outages of or after {} are too short; use at least {}, or none", .0, LteSpec::STEP)]
    Outage(TimeDelta),
    /// The trace is too short or too long.
    #[error("a trace of {} is out of range; expected {} to {}", .0, LteSpec::LENGTHS.0, LteSpec::LENGTHS.1)]
    Length(TimeDelta),
}

impl LteSpec {
    /// Time step: the rate is constant within it.
    pub const STEP: TimeDelta = TimeDelta::from_millis(20);
    /// The largest coefficient of variation.
    pub const MAX_VARIATION: Ratio = Ratio::new(3, 1);
    /// Range of correlation times.
    pub const CORRELATIONS: (TimeDelta, TimeDelta) = (Self::STEP, TimeDelta::from_secs(600));
    /// Range of trace lengths.
    pub const LENGTHS: (TimeDelta, TimeDelta) =
        (TimeDelta::from_secs(1), TimeDelta::from_secs(86_400));

    /// A link of this mean rate: it varies by half, over some seconds, without outages.
    pub const fn usual(mean: Rate) -> Self {
        Self {
            mean,
            variation: Ratio::new(1, 2),
            correlation: TimeDelta::from_secs(2),
            outage_every: TimeDelta::ZERO,
            outage: TimeDelta::from_millis(500),
            length: TimeDelta::from_secs(600),
        }
    }

    /// Checks that the link can be generated.
    pub fn check(&self) -> Result<(), LteError> {
        let within = |span, (least, most)| (least..=most).contains(&span);
        let (slowest, fastest) = LinkSpec::RATES;
        let too_short =
            [self.outage_every, self.outage].into_iter().find(|span| *span < Self::STEP);
        match too_short {
            _ if self.mean < slowest || self.mean > fastest => Err(LteError::Mean(self.mean)),
            _ if self.variation.as_f64() > Self::MAX_VARIATION.as_f64() => {
                Err(LteError::Variation(self.variation))
            }
            _ if !within(self.correlation, Self::CORRELATIONS) => {
                Err(LteError::Correlation(self.correlation))
            }
            _ if !within(self.length, Self::LENGTHS) => Err(LteError::Length(self.length)),
            Some(span) if !self.outage_every.is_zero() => Err(LteError::Outage(span)),
            _ => Ok(()),
        }
    }

    /// The long-run mean rate, including outages.
    pub fn long_run_mean(&self) -> Rate {
        let cycle = self.outage_every + self.outage;
        if self.outage_every.is_zero() {
            return self.mean;
        }
        let sent = u128::from(self.mean.bytes_per_sec()) * u128::from(self.outage_every.as_nanos());
        let mean = sent / u128::from(cycle.as_nanos().max(1));
        Rate::from_bytes_per_sec(u64::try_from(mean).unwrap_or(u64::MAX))
    }

    /// The trace for `seed`, drawn from its own stream; the same on every machine. Unspecified if
    /// [`LteSpec::check`] fails.
    pub fn trace(&self, seed: u64, stream: u64) -> Trace {
        let step = Self::STEP.as_nanos();
        let length = self.length.min(Self::LENGTHS.1).max(Self::STEP);
        let mut shadowing = Shadowing::new(self, Rng::new(seed, stream));
        let rates = (0..length.as_nanos() / step).map(|n| (n * step, shadowing.next()));
        Trace::of_rates(rates, length.as_nanos() / step * step)
    }
}

/// The state of the process.
struct Shadowing {
    rng: Rng,
    /// Mean and standard deviation of the logarithm of the rate in bytes per second.
    mean: f64,
    deviation: f64,
    /// Weights of the previous value and of the new one.
    old_weight: f64,
    new_weight: f64,
    /// Standard normal.
    level: f64,
    out: bool,
    /// Time between outages and length of an outage, in nanoseconds; 0 for no outages.
    every: u64,
    outage: u64,
}

impl Shadowing {
    fn new(spec: &LteSpec, mut rng: Rng) -> Self {
        let variation = spec.variation.as_f64();
        // The moments of the log-normal distribution, solved for those of the logarithm.
        let variance = libm::log(1.0 + variation * variation);
        let mean = libm::log(spec.mean.bytes_per_sec().max(1) as f64) - variance / 2.0;
        let step = LteSpec::STEP.as_nanos() as f64;
        let old_weight = libm::exp(-step / spec.correlation.max(LteSpec::STEP).as_nanos() as f64);
        let level = normal(&mut rng);
        let every = spec.outage_every.as_nanos();
        let outage = if every == 0 { 0 } else { spec.outage.as_nanos() };
        // Starts in the stationary distribution: in an outage as often as later.
        let out = rng.below(every.saturating_add(outage)) < outage;
        let new_weight = (1.0 - old_weight * old_weight).sqrt();
        Self {
            rng,
            mean,
            deviation: variance.sqrt(),
            old_weight,
            new_weight,
            level,
            out,
            every,
            outage,
        }
    }

    /// The rate of the next step.
    fn next(&mut self) -> Rate {
        let out = self.out;
        let rate = libm::exp(self.mean + self.deviation * self.level).round() as u64;
        self.level = self.old_weight * self.level + self.new_weight * normal(&mut self.rng);
        // Memoryless: each step ends the state with the same probability, given by the mean
        // duration.
        let lasts = if out { self.outage } else { self.every };
        let ends = self.rng.below(lasts) < LteSpec::STEP.as_nanos();
        self.out = if self.every == 0 { false } else { out != ends };
        if out { Rate::ZERO } else { Rate::from_bytes_per_sec(rate).min(LinkSpec::RATES.1) }
    }
}

/// Approximately standard normal: the sum of twelve uniform numbers, each with variance 1/12. At
/// most 6. The autoregression, a sum of many of these, is even closer to normal.
fn normal(rng: &mut Rng) -> f64 {
    let sum: u64 = (0..12).map(|_| rng.next_u64() >> 32).sum();
    sum as f64 / 4_294_967_295.0 - 6.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LinkRate;
    use uncork_testkit::assert_message;
    use uncork_units::Time;

    /// A day, 4.32 million steps.
    fn day(variation: Ratio, outage_every: TimeDelta) -> LteSpec {
        LteSpec {
            mean: Rate::from_bits_per_sec(5_170_000),
            variation,
            correlation: TimeDelta::from_secs(1),
            outage_every,
            outage: TimeDelta::from_millis(500),
            length: TimeDelta::from_secs(86_400),
        }
    }

    /// Bytes per second, step by step.
    fn rates(spec: &LteSpec, seed: u64) -> Vec<f64> {
        let trace = spec.trace(seed, 4);
        let link = LinkRate::traced(&trace, TimeDelta::ZERO, true);
        let step = LteSpec::STEP.as_nanos();
        let times = (0..spec.length.as_nanos() / step).map(|n| Time::from_nanos(n * step));
        times.map(|time| link.rate_at(time).bytes_per_sec() as f64).collect()
    }

    fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
        let count = values.len() as f64;
        values.sum::<f64>() / count
    }

    /// Covariance around the overall mean.
    fn covariance(values: &[f64], lag: usize) -> f64 {
        let centre = mean(values.iter().copied());
        let pairs = values.iter().zip(&values[lag..]);
        mean(pairs.map(|(one, other)| (one - centre) * (other - centre)))
    }

    /// Closed forms of a log-normal autoregression: with the variance s² = ln(1 + c²) of the
    /// logarithm and its correlation φ at some lag, the rate's correlation is (exp(s² φ) − 1) /
    /// (exp(s²) − 1). Standard errors are for 43 200 independent samples: a day at 2 s, twice the
    /// correlation time. Four of them are allowed.
    #[test]
    fn mean_variation_and_correlation_match_the_specification() {
        for (seed, variation) in [(1, Ratio::new(1, 5)), (2, Ratio::new(1, 2)), (3, Ratio::ONE)] {
            let rates = rates(&day(variation, TimeDelta::ZERO), seed);
            let c = variation.as_f64();
            let error = 1.0 / 43_200_f64.sqrt();
            let average = mean(rates.iter().copied());
            assert!((average / 646_250.0 - 1.0).abs() < 4.0 * c * error, "mean {average}");
            let s2 = (1.0 + c * c).ln();
            let kurtosis = (4.0 * s2).exp() + 2.0 * (3.0 * s2).exp() + 3.0 * (2.0 * s2).exp() - 3.0;
            let measured = covariance(&rates, 0).sqrt() / average;
            let tolerance = 4.0 * ((kurtosis - 1.0) / 4.0).sqrt() * error;
            assert!((measured / c - 1.0).abs() < tolerance, "variation {measured}, not {c}");
            for lag in [1, 10, 50, 100, 250] {
                let phi = (-0.02 * lag as f64).exp();
                let expected = ((s2 * phi).exp() - 1.0) / (s2.exp() - 1.0);
                let measured = covariance(&rates, lag) / covariance(&rates, 0);
                assert!((measured - expected).abs() < 0.03, "{lag}: {measured}, not {expected}");
            }
        }
    }

    /// Outages of 0.5 s after 10 s on average: 8229 per day; numbers of steps are geometric.
    #[test]
    fn outages_match_the_requested_frequency_and_length() {
        let spec = day(Ratio::new(1, 2), TimeDelta::from_secs(10));
        let rates = rates(&spec, 1);
        let runs = rates.chunk_by(|one, other| (*one > 0.0) == (*other > 0.0));
        let lengths: Vec<f64> =
            runs.filter(|run| run[0] == 0.0).map(|run| run.len() as f64 * 0.02).collect();
        let count = lengths.len() as f64;
        assert!((count - 86_400.0 / 10.5).abs() < 4.0 * count.sqrt(), "{count}");
        let length = mean(lengths.iter().copied());
        assert!((length - 0.5).abs() < 4.0 * 0.5 / count.sqrt(), "{length}");
        let long = lengths.iter().filter(|length| **length > 1.0).count() as f64 / count;
        let expected = (1.0 - 1.0 / 25_f64).powi(50);
        let error = (expected * (1.0 - expected) / count).sqrt();
        assert!((long - expected).abs() < 4.0 * error, "{long}, not {expected}");
        let all = spec.trace(1, 4).mean().bytes_per_sec() as f64;
        let expected = spec.long_run_mean().bytes_per_sec() as f64;
        assert!((expected - 646_250.0 / 1.05).abs() < 1.0, "{expected}");
        assert!((all / expected - 1.0).abs() < 0.015, "{all}, not {expected}");
    }

    #[test]
    fn no_variation_is_a_constant_rate() {
        let spec = day(Ratio::new(0, 1), TimeDelta::ZERO);
        let spec = LteSpec { length: TimeDelta::from_secs(10), ..spec };
        assert!(rates(&spec, 1).iter().all(|rate| (*rate - 646_250.0).abs() < 1.0));
    }

    /// Bytes of the first second, to detect machines that compute differently. A few lines of
    /// Python give the same.
    #[test]
    fn a_seed_gives_the_same_trace_on_all_machines() {
        let spec = day(Ratio::new(1, 2), TimeDelta::from_secs(10));
        let spec = LteSpec { length: TimeDelta::from_secs(600), ..spec };
        let second = Time::ZERO + TimeDelta::from_secs(1);
        let bytes = |seed, stream| {
            LinkRate::traced(&spec.trace(seed, stream), TimeDelta::ZERO, true).capacity(second)
        };
        assert_eq!([bytes(1, 0), bytes(1, 1), bytes(2, 0)], [261_526, 735_795, 320_464]);
        assert_eq!(spec.trace(1, 0), spec.trace(1, 0));
    }

    #[test]
    fn unsupported_links_are_rejected() {
        let good = day(Ratio::new(1, 2), TimeDelta::ZERO);
        assert_eq!(good.check(), Ok(()));
        let none = TimeDelta::ZERO;
        for (case, spec) in [
            ("no mean", LteSpec { mean: Rate::ZERO, ..good }),
            ("any mean", LteSpec { mean: Rate::MAX, ..good }),
            ("variation", LteSpec { variation: Ratio::new(4, 1), ..good }),
            ("correlation", LteSpec { correlation: none, ..good }),
            ("frequent outages", LteSpec { outage_every: TimeDelta::from_millis(19), ..good }),
            (
                "short outages",
                LteSpec { outage_every: TimeDelta::from_secs(1), outage: none, ..good },
            ),
            ("length", LteSpec { length: TimeDelta::MAX, ..good }),
        ] {
            // Any result, but no panic.
            LteSpec { length: TimeDelta::from_secs(1), ..spec }.trace(1, 0);
            assert_message!(case, spec.check().expect_err(case));
        }
    }
}
