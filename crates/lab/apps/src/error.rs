//! Errors of specifications.

use std::fmt;

/// Why a specification cannot run. The message has the setting, its value and the valid range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place} is {value}: {remedy}")]
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
