//! Exact ratios: gains, thresholds and probabilities without floating point.

use crate::wide::{mul_div, saturating_mul};

/// A ratio of two integers, such as a pacing gain of 277/100.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ratio {
    num: u32,
    den: u32,
}

impl Ratio {
    /// The ratio 1.
    pub const ONE: Self = Self::new(1, 1);

    /// `num` / `den`; a `den` of 0 counts as 1.
    pub const fn new(num: u32, den: u32) -> Self {
        Self { num, den: if den == 0 { 1 } else { den } }
    }

    /// The numerator.
    pub const fn num(self) -> u32 {
        self.num
    }

    /// The denominator, never 0.
    pub const fn den(self) -> u32 {
        self.den
    }

    /// `value` times this ratio, rounded down, saturating. Whole ratios, as most gains are, need no division.
    pub const fn of(self, value: u64) -> u64 {
        if self.den == 1 {
            return saturating_mul(value, self.num as u64);
        }
        mul_div(value, self.num as u64, self.den as u64)
    }

    /// The ratio as a number, for reports and plots.
    pub fn as_f64(self) -> f64 {
        f64::from(self.num) / f64::from(self.den)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_rounds_down() {
        assert_eq!(Ratio::new(277, 100).of(1_000), 2_770);
        assert_eq!(Ratio::new(1, 3).of(10), 3);
        assert_eq!(Ratio::ONE.of(u64::MAX), u64::MAX);
    }

    #[test]
    fn products_beyond_64_bits_are_exact() {
        assert_eq!(Ratio::new(u32::MAX, u32::MAX).of(u64::MAX), u64::MAX);
        assert_eq!(Ratio::new(1_000, 2_000).of(u64::MAX), u64::MAX / 2);
    }

    #[test]
    fn extremes_saturate() {
        assert_eq!(Ratio::new(2, 1).of(u64::MAX), u64::MAX);
        assert_eq!(Ratio::new(3, 0), Ratio::new(3, 1));
    }
}
