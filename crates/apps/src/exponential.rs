//! Exponentially distributed spans, without a logarithm.

use uncork_units::{Rng, TimeDelta};

/// Draws a span that is exponentially distributed with this `mean`, rounded to the nanosecond.
///
/// The method is von Neumann's ("Various techniques used in connection with random digits", 1951),
/// which only compares uniform numbers: the last bit of a machine's `ln` cannot matter, and equal
/// seeds give equal spans everywhere. Draw a number, and further ones as long as each is smaller than
/// the one before. If their count is odd, the first is the fraction of the variate; if not, its whole
/// part grows by 1 and all begins anew.
///
/// In steps of e = 2^-64, let the first number be m. The j numbers after it descend with probability
/// C(m, j) e^j, and so the count is odd with probability sum (-1)^j C(m, j) e^j = (1 - e)^m. The
/// variate's steps are therefore geometric: they are n or more with probability (1 - e)^n. Of
/// exp(-x), for the variate x = n e, this is short by less than x / 2^64 of it: the 64 bits of the
/// uniform numbers are the only error, besides the rounding. A draw takes 4.3 numbers on average
/// (E^2 / (E - 1), with Euler's number E).
pub fn exponential(mean: TimeDelta, rng: &mut Rng) -> TimeDelta {
    let (whole, fraction) = standard(rng);
    let mean = u128::from(mean.as_nanos());
    // Below 2^64 · (2^64 - 1) + 2^63, which 128 bits hold.
    let part = (mean * u128::from(fraction) + (1 << 63)) >> 64;
    let nanos = (mean * u128::from(whole)).saturating_add(part);
    TimeDelta::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// A standard exponential variate: its whole part, and its fraction in steps of 2^-64.
fn standard(rng: &mut Rng) -> (u64, u64) {
    let mut whole = 0;
    loop {
        let first = rng.next_u64();
        if descends_oddly(first, rng) {
            return (whole, first);
        }
        whole += 1;
    }
}

/// Whether an odd count of numbers, `first` among them, descends before one does not.
fn descends_oddly(first: u64, rng: &mut Rng) -> bool {
    let (mut last, mut odd) = (first, true);
    loop {
        let next = rng.next_u64();
        if next >= last {
            return odd;
        }
        (last, odd) = (next, !odd);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: usize = 200_000;

    /// Variates with mean 1, the nanosecond being 10^-9 of it.
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

    /// Kolmogorov-Smirnov against 1 - e^-x; 1.95/sqrt(n) is exceeded by chance once in 1000.
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

    /// Two variates in a row know nothing of each other: their correlation is 0 ± 1/sqrt(n).
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

    /// As a second implementation, in exact fractions, has it.
    #[test]
    fn exponential_draws_repeat_with_the_seed() {
        let mut rng = Rng::new(42, 0);
        let drawn: Vec<u64> =
            (0..4).map(|_| exponential(TimeDelta::from_secs(1), &mut rng).as_nanos()).collect();
        assert_eq!(drawn, [1_325_444_102, 2_318_779_289, 98_900_690, 53_573_145]);
        assert_eq!(exponential(TimeDelta::ZERO, &mut rng), TimeDelta::ZERO);
        exponential(TimeDelta::MAX, &mut rng);
    }
}
