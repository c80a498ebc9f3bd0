//! Gains of a delay controller.

use std::fmt;
use std::str::FromStr;

use crate::decimal::{of_thousandths, thousandths};

/// A probability per second of delay, in hertz: exact to thousandths, below 4 million. Written
/// `0.125`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Gain(u32);

/// A text that is not a valid gain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a gain in hertz with at most three decimal places, such as 0.125")]
pub struct GainError;

impl Gain {
    /// A gain of `n` thousandths of a hertz.
    pub const fn from_millihertz(n: u32) -> Self {
        Self(n)
    }

    /// In thousandths of a hertz.
    pub const fn as_millihertz(self) -> u32 {
        self.0
    }
}

impl FromStr for Gain {
    type Err = GainError;

    fn from_str(text: &str) -> Result<Self, GainError> {
        let gain = thousandths(text).and_then(|gain| u32::try_from(gain).ok());
        gain.map(Self).ok_or(GainError)
    }
}

/// Writes the format that [`Gain::from_str`] parses.
impl fmt::Display for Gain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&of_thousandths(u64::from(self.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_and_parse_round_trip() {
        for (text, millihertz) in [("0.125", 125), ("3.2", 3200), ("10", 10_000), ("0", 0)] {
            assert_eq!(text.parse(), Ok(Gain(millihertz)));
            assert_eq!(Gain(millihertz).to_string(), text);
        }
        for text in ["", "-1", "0.1234", "1Hz", "4294968"] {
            assert_eq!(text.parse::<Gain>(), Err(GainError), "{text}");
        }
    }
}
