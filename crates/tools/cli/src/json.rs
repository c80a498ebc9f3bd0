//! Documents as JSON for people and programs.

use serde::Serialize;

use crate::failure::Failure;

/// `value`, indented, with a line feed at its end.
pub(crate) fn pretty(value: &impl Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(value);
    text.map(|text| text + "\n").map_err(|error| Failure::Environment(error.to_string()))
}
