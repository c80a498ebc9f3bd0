//! Decimal numbers, parsed and printed exactly.
#![expect(clippy::disallowed_types, reason = "only hosts read and write text")]

use core::fmt;

use crate::error::Problem;

/// Maximum number of decimal places.
const MAX_PLACES: u32 = 9;

/// The number `mantissa` / 10^`places`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decimal {
    mantissa: u128,
    places: u32,
}

impl Decimal {
    /// Splits `text` into its leading number and the rest.
    pub(crate) fn split(text: &str) -> Result<(Self, &str), Problem> {
        if text.is_empty() {
            return Err(Problem::Empty);
        }
        if text.starts_with(['-', '\u{2212}']) {
            return Err(Problem::Negative);
        }
        let (whole, rest) = split_digits(text);
        let (fraction, rest) = match rest.strip_prefix('.') {
            Some(rest) => split_digits(rest),
            None => ("0", rest),
        };
        if whole.is_empty() || fraction.is_empty() {
            return Err(Problem::NotANumber);
        }
        let fraction = fraction.trim_end_matches('0');
        if fraction.len() > MAX_PLACES as usize {
            return Err(Problem::TooManyPlaces);
        }
        let mantissa = append(append(0, whole)?, fraction)?;
        Ok((Self { mantissa, places: fraction.len() as u32 }, rest))
    }

    /// The number `mantissa` / 10^`places`, without trailing zeros.
    pub(crate) const fn new(mut mantissa: u128, mut places: u32) -> Self {
        while places > 0 && mantissa % 10 == 0 {
            mantissa /= 10;
            places -= 1;
        }
        Self { mantissa, places }
    }

    /// `amount` / `scale`, or `None` if that has too many decimal places.
    pub(crate) fn quotient(amount: u128, scale: u128) -> Option<Self> {
        let mut mantissa = amount / scale;
        let mut rest = amount % scale;
        let mut places = 0;
        while rest != 0 {
            if places == MAX_PLACES {
                return None;
            }
            mantissa = mantissa * 10 + rest * 10 / scale;
            rest = rest * 10 % scale;
            places += 1;
        }
        Some(Self { mantissa, places })
    }

    /// This number times `num` / `den`, rounded down. An error if a non-zero number becomes zero.
    pub(crate) fn scaled(self, num: u64, den: u64) -> Result<u64, Problem> {
        let product = self.mantissa.checked_mul(u128::from(num)).ok_or(Problem::TooLarge)?;
        let scaled = product / (u128::from(den) * 10_u128.pow(self.places));
        if scaled == 0 && self.mantissa != 0 {
            return Err(Problem::TooSmall);
        }
        u64::try_from(scaled).map_err(|_| Problem::TooLarge)
    }

    /// This number times 100.
    pub(crate) fn hundredfold(self) -> Self {
        let shift = self.places.min(2);
        let mantissa = self.mantissa.saturating_mul(10_u128.pow(2 - shift));
        Self { mantissa, places: self.places - shift }
    }

    /// Whether this number is at most 1.
    pub(crate) fn is_fraction(self) -> bool {
        self.mantissa <= 10_u128.pow(self.places)
    }

    /// Whether this number is printed without a decimal point.
    pub(crate) fn is_whole(self) -> bool {
        self.places == 0
    }

    /// The length of this number in characters when printed.
    pub(crate) fn width(self) -> u32 {
        let digits = self.mantissa.checked_ilog10().unwrap_or(0) + 1;
        if self.is_whole() { digits } else { digits.max(self.places + 1) + 1 }
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let one = 10_u128.pow(self.places);
        write!(f, "{}", self.mantissa / one)?;
        if self.is_whole() {
            return Ok(());
        }
        write!(f, ".{:0width$}", self.mantissa % one, width = self.places as usize)
    }
}

/// Splits `text` after its leading digits.
fn split_digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

/// `number` with `digits` appended.
fn append(number: u128, digits: &str) -> Result<u128, Problem> {
    digits.bytes().try_fold(number, |number, digit| {
        let shifted = number.checked_mul(10).ok_or(Problem::TooLarge)?;
        shifted.checked_add(u128::from(digit - b'0')).ok_or(Problem::TooLarge)
    })
}

/// Prints `amount` exactly, in the unit with the shortest result among those in which it is at least 1.
/// `units` are scales with names, largest first; the last scale is 1.
pub(crate) fn write_shortest(
    f: &mut fmt::Formatter<'_>,
    amount: u128,
    units: &[(u128, &str)],
) -> fmt::Result {
    let fitting = units.iter().filter(|(scale, _)| *scale == 1 || *scale <= amount);
    let exact =
        fitting.filter_map(|(scale, unit)| Some((Decimal::quotient(amount, *scale)?, unit)));
    let shortest =
        exact.min_by_key(|(number, unit)| (number.width() + unit.len() as u32, !number.is_whole()));
    match shortest {
        Some((number, unit)) => write!(f, "{number}{unit}"),
        None => write!(f, "{amount}"),
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::string::ToString;

    use super::*;

    fn decimal(text: &str) -> Decimal {
        Decimal::split(text).unwrap().0
    }

    #[test]
    fn splits_number_and_unit() {
        let (number, unit) = Decimal::split("12.050mbit").unwrap();
        assert_eq!(number, Decimal { mantissa: 1205, places: 2 });
        assert_eq!(unit, "mbit");
    }

    #[test]
    fn invalid_numbers_are_named() {
        assert_eq!(Decimal::split(""), Err(Problem::Empty));
        assert_eq!(Decimal::split("-1s"), Err(Problem::Negative));
        assert_eq!(Decimal::split("\u{2212}1s"), Err(Problem::Negative));
        for text in ["s", ".5s", "5.s", "+5s", "\u{663}s"] {
            assert_eq!(Decimal::split(text), Err(Problem::NotANumber), "{text}");
        }
    }

    #[test]
    fn reads_nine_places() {
        assert_eq!(decimal("0.123456789").to_string(), "0.123456789");
        assert_eq!(decimal("0.1234567890").to_string(), "0.123456789");
        assert_eq!(Decimal::split("0.1234567891"), Err(Problem::TooManyPlaces));
    }

    #[test]
    fn a_number_too_long_for_the_mantissa_is_too_large() {
        let text = "9".repeat(40);
        assert_eq!(Decimal::split(&text), Err(Problem::TooLarge));
    }

    #[test]
    fn scales_exactly_and_rounds_down() {
        assert_eq!(decimal("0.1").scaled(10, 1), Ok(1));
        assert_eq!(decimal("0.3").scaled(1024, 1), Ok(307));
        assert_eq!(decimal("18446744073.709551615").scaled(1_000_000_000, 1), Ok(u64::MAX));
        assert_eq!(
            decimal("18446744073.709551616").scaled(1_000_000_000, 1),
            Err(Problem::TooLarge)
        );
        assert_eq!(decimal("0.9").scaled(1, 1), Err(Problem::TooSmall));
        assert_eq!(decimal("0.0").scaled(1, 1), Ok(0));
    }

    #[test]
    fn hundredfold_moves_the_point() {
        for (text, hundredfold) in [("0.01", "1"), ("0.5", "50"), ("1", "100"), ("0.0025", "0.25")]
        {
            assert_eq!(decimal(text).hundredfold().to_string(), hundredfold);
        }
    }

    #[test]
    fn width_is_the_printed_length() {
        for text in ["0", "7", "10", "0.5", "0.001", "12.25", "1234567.000000001"] {
            assert_eq!(decimal(text).width() as usize, text.len());
            assert_eq!(decimal(text).to_string(), text);
        }
    }
}
