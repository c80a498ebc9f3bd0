//! Random extra delay per packet.

use uncork_units::{Rng, TimeDelta};

/// Random extra delay of each packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JitterSpec {
    /// Its distribution between 0 and `max`.
    pub distribution: JitterDistribution,
    /// Maximum jitter.
    pub max: TimeDelta,
    /// Whether a packet may overtake earlier ones. If not, it arrives no earlier than its
    /// predecessor, which changes the distribution: a packet's delay is the maximum of its own
    /// jitter and what remains of its predecessors'. It is larger on average and varies less the
    /// closer packets follow each other. At a spacing of `max` or more nothing changes; with `n`
    /// packets at once, the last one has the maximum of `n` draws, n / (n + 1) of `max` on average
    /// if uniform.
    pub reorder: bool,
}

/// Distributions of jitter between 0 and its maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JitterDistribution {
    /// Uniform: mean max / 2, standard deviation max / √12.
    Uniform,
    /// Close to normal: the mean of four uniform values (Bates). Mean max / 2, standard deviation
    /// max / √48; at most 3.5 standard deviations from the mean, where the normal distribution has
    /// 0.05 %.
    Bell,
}

/// A jitter process.
#[derive(Clone, Debug)]
pub(crate) struct Jitter {
    spec: JitterSpec,
    rng: Rng,
}

impl Jitter {
    pub(crate) fn new(spec: JitterSpec, seed: u64, stream: u64) -> Self {
        Self { spec, rng: Rng::new(seed, stream) }
    }

    pub(crate) fn reorders(&self) -> bool {
        self.spec.reorder
    }

    /// The jitter of the next packet. Takes exactly one number from the stream.
    pub(crate) fn draw(&mut self) -> TimeDelta {
        let max = self.spec.max.as_nanos();
        TimeDelta::from_nanos(match self.spec.distribution {
            JitterDistribution::Uniform => self.rng.below(max.saturating_add(1)),
            JitterDistribution::Bell => {
                let bits = self.rng.next_u64();
                let sum: u64 = [0, 16, 32, 48].map(|shift| (bits >> shift) & 0xffff).iter().sum();
                (u128::from(max) * u128::from(sum) / (4 * 0xffff)) as u64
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A million draws, as fractions of the maximum.
    fn draws(distribution: JitterDistribution) -> Vec<f64> {
        let max = TimeDelta::from_millis(10);
        let mut jitter = Jitter::new(JitterSpec { distribution, max, reorder: true }, 1, 2);
        (0..1_000_000).map(|_| jitter.draw().as_nanos() as f64 / max.as_nanos() as f64).collect()
    }

    /// Checks mean 1/2 and the given variance within four standard errors. The kurtosis is needed
    /// for the variance's standard error.
    #[test]
    fn distributions_have_their_moments_and_their_bounds() {
        let uniform = (JitterDistribution::Uniform, 1.0 / 12.0, 1.8);
        let bell = (JitterDistribution::Bell, 1.0 / 48.0, 2.7);
        for (distribution, variance, kurtosis) in [uniform, bell] {
            let draws = draws(distribution);
            assert!(draws.iter().all(|draw| (0.0..=1.0).contains(draw)));
            let mean = draws.iter().sum::<f64>() / 1e6;
            assert!((mean - 0.5).abs() < 4.0 * (variance / 1e6_f64).sqrt(), "{mean}");
            let measured = draws.iter().map(|draw| (draw - 0.5).powi(2)).sum::<f64>() / 1e6;
            let error = ((kurtosis - 1.0) / 1e6_f64).sqrt();
            assert!((measured / variance - 1.0).abs() < 4.0 * error, "{measured}");
        }
    }

    /// 68.3 % of a normal distribution is within one standard deviation. Four uniform values give 1
    /// − 2 F with F = (x⁴ − 4 (x − 1)⁴) / 24 at x = 2 − 1/√3: 66.9 %.
    #[test]
    fn bell_is_nearly_normal() {
        let deviation = 1.0 / 48_f64.sqrt();
        let within = draws(JitterDistribution::Bell)
            .iter()
            .filter(|draw| (**draw - 0.5).abs() < deviation)
            .count() as f64
            / 1e6;
        let x = 2.0 - 4.0 * deviation;
        let expected = 1.0 - 2.0 * (x.powi(4) - 4.0 * (x - 1.0).powi(4)) / 24.0;
        assert!((expected - 0.669).abs() < 0.001, "{expected}");
        assert!((within - expected).abs() < 0.002, "{within}, not {expected}");
    }

    #[test]
    fn zero_and_maximum_jitter() {
        for distribution in [JitterDistribution::Uniform, JitterDistribution::Bell] {
            let none = JitterSpec { distribution, max: TimeDelta::ZERO, reorder: false };
            assert_eq!(Jitter::new(none, 1, 1).draw(), TimeDelta::ZERO);
            Jitter::new(JitterSpec { max: TimeDelta::MAX, ..none }, 1, 1).draw();
        }
    }
}
