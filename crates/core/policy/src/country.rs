//! Countries.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// A two-letter country code (ISO 3166-1), such as `PE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Country([u8; 2]);

/// The text is not a country code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("expected a country code of two capital letters, such as PE for Peru")]
pub struct CountryError;

impl FromStr for Country {
    type Err = CountryError;

    fn from_str(text: &str) -> Result<Self, CountryError> {
        match text.as_bytes() {
            &[one, other] if one.is_ascii_uppercase() && other.is_ascii_uppercase() => {
                Ok(Self([one, other]))
            }
            _ => Err(CountryError),
        }
    }
}

impl fmt::Display for Country {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", char::from(self.0[0]), char::from(self.0[1]))
    }
}
