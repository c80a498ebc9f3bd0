//! Exponentially distributed spans.

use uncork_units::{Rng, TimeDelta};

/// Draws an exponentially distributed span with this `mean`, rounded to the nanosecond, by
/// inversion of one uniform number. `libm` gives the same bits on every machine: equal seeds give
/// equal spans.
pub fn exponential(mean: TimeDelta, rng: &mut Rng) -> TimeDelta {
    // Above 0 and at most 1, in steps of 2^-53, which are exact in floating point.
    let uniform = ((rng.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
    TimeDelta::from_nanos((-libm::log(uniform) * mean.as_nanos() as f64).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: usize = 200_000;

    /// Variates with mean 1, in units of 10^-9.
    fn variates(seed: u64) -> Vec<f64> {
        let mut rng = Rng::new(seed, 0);
        (0..DRAWS).map(|_| exponential(TimeDelta::from_secs(1), &mut rng).as_secs_f64()).collect()
    }

    /// Mean and variance are 1; the estimates' standard deviations are sqrt(1/n) and sqrt(8/n).
    #[test]
    fn exponential_has_mean_and_variance_of_the_closed_form() {
        let n = DRAWS as f64;
        for seed in 0..5 {
            let drawn = variates(seed);
            let mean = drawn.iter().sum::<f64>() / n;
            let variance = drawn.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
            assert!((mean - 1.0).abs() < 4.0 / n.sqrt(), "seed {seed}: mean {mean}");
            assert!((variance - 1.0).abs() < 4.0 * (8.0 / n).sqrt(), "seed {seed}: {variance}");
        }
    }

    /// Kolmogorov-Smirnov test against 1 - e^-x; 1.95/sqrt(n) is exceeded by chance once in 1000.
    #[test]
    fn exponential_draws_follow_the_distribution() {
        for seed in 0..5 {
            let mut drawn = variates(seed);
            drawn.sort_by(f64::total_cmp);
            let n = DRAWS as f64;
            let distance = drawn.iter().enumerate().map(|(rank, x)| {
                let (share, expected) = (rank as f64 / n, 1.0 - (-x).exp());
                (expected - share).abs().max((share + 1.0 / n - expected).abs())
            });
            let distance = distance.fold(0.0, f64::max);
            assert!(distance < 1.95 / n.sqrt(), "seed {seed}: {distance}");
        }
    }

    /// Consecutive variates are independent: their correlation is 0 ± 1/sqrt(n).
    #[test]
    fn exponential_draws_are_independent() {
        let drawn = variates(9);
        let products = drawn.windows(2).map(|pair| (pair[0] - 1.0) * (pair[1] - 1.0));
        let correlation = products.sum::<f64>() / DRAWS as f64;
        assert!(correlation.abs() < 4.0 / (DRAWS as f64).sqrt(), "{correlation}");
    }

    #[test]
    fn exponential_mean_only_scales_draws() {
        let (mut one, mut other) = (Rng::new(3, 1), Rng::new(3, 1));
        for _ in 0..1000 {
            let second = exponential(TimeDelta::from_secs(1), &mut one).as_nanos();
            let milli = exponential(TimeDelta::from_millis(1), &mut other).as_nanos();
            assert!((milli * 1000).abs_diff(second) <= 501, "{milli} {second}");
        }
    }

    #[test]
    fn exponential_draw_is_the_inverse_of_the_distribution_at_a_uniform_number() {
        let (mut rng, mut uniform) = (Rng::new(42, 0), Rng::new(42, 0));
        for _ in 0..1000 {
            let drawn = exponential(TimeDelta::from_secs(1), &mut rng).as_nanos() as f64;
            let share = uniform.next_u64() as f64 / 2_f64.powi(64);
            assert!((drawn + share.ln() * 1e9).abs() < 2.0, "{drawn} {share}");
        }
        assert_eq!(exponential(TimeDelta::ZERO, &mut rng), TimeDelta::ZERO);
        exponential(TimeDelta::MAX, &mut rng);
    }
}
