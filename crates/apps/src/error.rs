//! What is wrong with a description.

use std::fmt;

/// Why a specification describes nothing that can run. Printed, it names the place and the value,
/// and says what to give instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    place: &'static str,
    value: String,
    remedy: String,
}

/// Fails unless `holds`, with the `place` that has this `value` and what to do about it.
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
