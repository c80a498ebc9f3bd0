//! Exponential and logarithm from additions, multiplications and divisions alone. IEEE 754 says what
//! these give, to the last bit; what `f64::exp` gives is up to the machine's library, and a trace
//! must be the same on all of them.

use std::f64::consts::{LN_2, SQRT_2};

/// e to the power `x`, for |`x`| up to 700; to about 15 digits.
pub(super) fn exp(x: f64) -> f64 {
    let twos = (x.clamp(-700.0, 700.0) / LN_2 + 0.5).floor();
    let rest = x.clamp(-700.0, 700.0) - twos * LN_2;
    // |rest| < 0.35: the terms left out are below 10^-18.
    let series = (1..=14).rev().fold(1.0, |sum, n| 1.0 + sum * rest / f64::from(n));
    series * power_of_two(twos as i64)
}

/// The natural logarithm of a normal positive number; to about 15 digits.
pub(super) fn ln(x: f64) -> f64 {
    let mut twos = (x.to_bits() >> 52) as i64 - 1023;
    let mut rest = x / power_of_two(twos);
    if rest > SQRT_2 {
        rest /= 2.0;
        twos += 1;
    }
    // ln r = 2 artanh((r − 1) / (r + 1)), whose argument is below 0.172.
    let t = (rest - 1.0) / (rest + 1.0);
    let series = (0..=12).rev().fold(0.0, |sum, n| sum * t * t + 1.0 / f64::from(2 * n + 1));
    twos as f64 * LN_2 + 2.0 * t * series
}

fn power_of_two(exponent: i64) -> f64 {
    f64::from_bits(((exponent + 1023).clamp(1, 2046) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agree_with_the_library_to_thirteen_digits() {
        for n in -6000..=6000 {
            let x = f64::from(n) / 10.0;
            assert!((exp(x) / x.exp() - 1.0).abs() < 2e-13, "exp({x}) = {}", exp(x));
        }
        for n in 1..=20_000 {
            for x in [f64::from(n) / 1e4, f64::from(n) * 1e6] {
                assert!((ln(x) - x.ln()).abs() < 1e-14 * (1.0 + x.ln().abs()), "ln({x})");
            }
        }
        assert!((exp(0.0) - 1.0).abs() < f64::EPSILON);
        assert!(ln(1.0).abs() < f64::EPSILON);
    }

    /// The bits, so that a machine that computes otherwise is found out; Python, step by step, gives
    /// the same. Correctly rounded, both would end in one more or less.
    #[test]
    fn the_last_bit_is_the_same_everywhere() {
        assert_eq!(exp(1.0).to_bits(), 0x4005_bf0a_8b14_576a);
        assert_eq!(ln(10.0).to_bits(), 0x4002_6bb1_bbb5_5515);
    }
}
