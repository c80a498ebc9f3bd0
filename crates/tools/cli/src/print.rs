//! Results on stdout, in the format that was asked for. The crate that owns a result has its document and its text.

use serde::Serialize;

use crate::failure::Failure;
use crate::stdout;
use crate::values::{Format, TextFormat};

/// The document, or its `text`.
pub(crate) fn document<D: Serialize>(
    format: TextFormat,
    document: &D,
    text: impl FnOnce(&D) -> String,
) -> Result<(), Failure> {
    let text = match format {
        TextFormat::Json => json(document)?,
        TextFormat::Human => text(document),
    };
    stdout::write(text.as_bytes())
}

/// A result that is in its format already. Tables have styles.
pub(crate) fn formatted(format: Format, text: &str) -> Result<(), Failure> {
    match format {
        Format::Human => stdout::styled(text),
        Format::Json | Format::Csv => stdout::data(text.as_bytes()),
    }
}

/// `document`, indented, with a line feed at its end.
pub(crate) fn json(document: &impl Serialize) -> Result<String, Failure> {
    let json = serde_json::to_string_pretty(document);
    json.map(|text| text + "\n").map_err(|error| Failure::Environment(error.to_string()))
}
