//! Errors of specifications.

use std::fmt;

/// Why a specification cannot run. Its text names place, value and remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    place: &'static str,
    value: String,
    remedy: String,
}

/// Fails unless `holds`, with `place`, `value` and `remedy`.
pub(crate) fn require(
    holds: bool,
    place: &'static str,
    value: impl fmt::Display,
    remedy: impl fmt::Display,
) -> Result<(), SpecError> {
    if holds {
        return Ok(());
    }
    Err(SpecError { place, value: value.to_string(), remedy: remedy.to_string() })
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {}: {}", self.place, self.value, self.remedy)
    }
}

impl std::error::Error for SpecError {}
