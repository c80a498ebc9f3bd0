//! Random numbers of the distributions that the world needs. `libm` gives equal bits on every
//! machine.

use uncork_units::Rng;

/// Uniform in `0..1`.
pub(super) fn uniform(rng: &mut Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// Uniform in `low..high` on a logarithmic scale.
pub(super) fn log_uniform(rng: &mut Rng, low: f64, high: f64) -> f64 {
    low * libm::pow(high / low, uniform(rng))
}

/// A factor with a median of 1. Its logarithm has the standard deviation `sigma` (Box and Muller,
/// 1958).
pub(super) fn log_normal(rng: &mut Rng, sigma: f64) -> f64 {
    let (one, other) = (1.0 - uniform(rng), uniform(rng));
    let normal = libm::sqrt(-2.0 * libm::log(one)) * libm::cos(2.0 * std::f64::consts::PI * other);
    libm::exp(sigma * normal)
}

/// A Pareto variable with the tail index `alpha`, bounded to `low..=high`.
pub(super) fn pareto(rng: &mut Rng, alpha: f64, low: f64, high: f64) -> f64 {
    let beyond = libm::pow(low / high, alpha);
    low * libm::pow(1.0 - uniform(rng) * (1.0 - beyond), -1.0 / alpha)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(draw: impl Fn(&mut Rng) -> f64) -> Vec<f64> {
        let mut rng = Rng::new(1, 0);
        let mut draws: Vec<f64> = (0..20_000).map(|_| draw(&mut rng)).collect();
        draws.sort_by(f64::total_cmp);
        draws
    }

    fn assert_near(value: f64, expected: f64) {
        assert!((value / expected - 1.0).abs() < 0.03, "{value} is not {expected}");
    }

    #[test]
    fn log_normal_has_its_median_and_spread() {
        let draws = draws(|rng| log_normal(rng, 0.5));
        assert_near(draws[10_000], 1.0);
        assert_near(draws[16_827], libm::exp(0.5)); // One standard deviation above: 84.13 %.
    }

    #[test]
    fn pareto_keeps_its_bounds_and_its_median() {
        let draws = draws(|rng| pareto(rng, 1.2, 3.0, 12.0));
        assert!(draws[0] >= 3.0 && draws[19_999] <= 12.0);
        // F(x) = (1 - (3/x)^1.2) / (1 - (3/12)^1.2) is one half at x = 4.648.
        assert_near(draws[10_000], 4.648);
    }

    #[test]
    fn log_uniform_has_the_geometric_mean_as_median() {
        assert_near(draws(|rng| log_uniform(rng, 10.0, 1000.0))[10_000], 100.0);
    }
}
