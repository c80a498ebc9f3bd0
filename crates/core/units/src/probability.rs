//! Probabilities without floating point.

use core::fmt;
use core::str::FromStr;

use crate::decimal::Decimal;
use crate::error::{Grammar, Problem};
use crate::quantity::{QuantityUnit, parse};
use crate::{ParseError, Rng};

/// Resolution in decimal places of a percent.
const PERCENT_PLACES: u32 = 9;

/// Steps of a percent.
const PER_PERCENT: u64 = 10_u64.pow(PERCENT_PLACES);

/// Steps from never to always.
const PER_ONE: u64 = 100 * PER_PERCENT;

/// A probability in steps of 10^-11. Written in percent: `1%`, `0.01%`. A bare number is rejected
/// as ambiguous: 0.5 could mean 50 % or 0.5 %.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Probability(u64);

const GRAMMAR: Grammar = Grammar {
    name: "probability",
    examples: "1%, 0.5% or 0.01%",
    units: &["%"],
    smallest: "0.000000001%",
    largest: "100%",
};

impl Probability {
    /// Never.
    pub const NEVER: Self = Self(0);
    /// Always.
    pub const ALWAYS: Self = Self(PER_ONE);

    /// Draws whether an event of this probability happens. Always takes one number from `rng`, so
    /// changing the probability does not shift later draws.
    pub const fn happens(self, rng: &mut Rng) -> bool {
        rng.below(PER_ONE) < self.0
    }

    /// `num` / `den`, rounded to the nearest step and at most 1; a `den` of 0 counts as 1.
    #[expect(clippy::disallowed_types, reason = "only hosts have probabilities")]
    pub const fn of(num: u64, den: u64) -> Self {
        let den = if den == 0 { 1 } else { den };
        if num >= den {
            return Self::ALWAYS;
        }
        let steps = (num as u128 * PER_ONE as u128 + den as u128 / 2) / den as u128;
        Self(steps as u64)
    }

    /// This probability in steps; [`Probability::ALWAYS`] has 10^11 of them.
    pub const fn steps(self) -> u64 {
        self.0
    }

    /// The probability from 0 to 1, for reports and plots.
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / PER_ONE as f64
    }
}

fn unit(name: &str) -> QuantityUnit {
    if name == "%" { QuantityUnit::of(PER_PERCENT) } else { QuantityUnit::Unknown }
}

impl FromStr for Probability {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let error = |problem| ParseError { grammar: &GRAMMAR, problem };
        match parse(text, &GRAMMAR, unit) {
            Ok(steps) if steps <= PER_ONE => Ok(Self(steps)),
            Ok(_) => Err(error(Problem::TooLarge)),
            Err(ParseError { problem: Problem::NoUnit(number), .. }) => Err(error(bare(number))),
            Err(error) => Err(error),
        }
    }
}

/// The problem with a number without `%`.
fn bare(number: Decimal) -> Problem {
    if number.is_fraction() { Problem::Fraction(number) } else { Problem::NoUnit(number) }
}

#[expect(clippy::disallowed_types, reason = "only hosts write text")]
impl fmt::Display for Probability {
    /// In percent, exactly.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", Decimal::new(u128::from(self.0), PERCENT_PLACES))
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::string::ToString;

    use proptest::{prop_assert_eq, proptest};
    use uncork_testkit::assert_message;

    use super::*;

    fn probability(text: &str) -> Probability {
        text.parse().unwrap()
    }

    fn error(text: &str) -> std::string::String {
        text.parse::<Probability>().unwrap_err().to_string()
    }

    /// Number of hits in `draws` draws.
    fn hits(probability: Probability, draws: u32) -> u32 {
        let mut rng = Rng::new(7, 0);
        (0..draws).map(|_| u32::from(probability.happens(&mut rng))).sum()
    }

    #[test]
    fn reads_percent_exactly() {
        assert_eq!(probability("1%"), Probability(PER_PERCENT));
        assert_eq!(probability("0.000000001 %"), Probability(1));
        assert_eq!(probability("100%"), Probability::ALWAYS);
        assert_eq!(probability("0%"), Probability::NEVER);
    }

    #[test]
    fn errors_suggest_the_correct_form() {
        for text in ["0.01", "1", "5", "101%", "-1%", "1ppm"] {
            assert_message!(text, error(text));
        }
    }

    #[test]
    fn never_and_always_are_certain() {
        assert_eq!(hits(Probability::NEVER, 10_000), 0);
        assert_eq!(hits(Probability::ALWAYS, 10_000), 10_000);
    }

    #[test]
    fn ratios_are_rounded_to_the_nearest_step() {
        assert_eq!(Probability::of(1, 3).steps(), 33_333_333_333);
        assert_eq!(Probability::of(2, 3).steps(), 66_666_666_667);
        assert_eq!(Probability::of(1, 100), probability("1%"));
        assert_eq!(Probability::of(0, 0), Probability::NEVER);
        assert_eq!(Probability::of(5, 0), Probability::ALWAYS);
        assert_eq!(Probability::of(u64::MAX - 1, u64::MAX), Probability::ALWAYS);
    }

    #[test]
    fn events_happen_with_their_probability() {
        // Within four standard deviations: 4 · sqrt(n · p · (1 - p)).
        for (text, expected, tolerance) in
            [("50%", 500_000, 2_000), ("1%", 10_000, 400), ("0.01%", 100, 40)]
        {
            let hits = hits(probability(text), 1_000_000);
            assert!(hits.abs_diff(expected) <= tolerance, "{text}: {hits}");
        }
    }

    #[test]
    fn every_draw_consumes_one_random_number() {
        let mut rng = Rng::new(1, 1);
        let mut reference = rng.clone();
        Probability::NEVER.happens(&mut rng);
        Probability::ALWAYS.happens(&mut rng);
        reference.next_u64();
        reference.next_u64();
        assert_eq!(rng.next_u64(), reference.next_u64());
    }

    proptest! {
        #[test]
        fn printed_values_parse_back(steps in 0..=PER_ONE) {
            let value = Probability(steps);
            prop_assert_eq!(value.to_string().parse(), Ok(value));
        }
    }
}
