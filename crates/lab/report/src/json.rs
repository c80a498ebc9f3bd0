//! The JSON form of documents.

use std::{error, fmt, io};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::ser::{Formatter, PrettyFormatter};

use crate::lab::{LabDocument, SuiteDocument};
use crate::number::text;
use crate::play::{GetDocument, ListenDocument};

/// Significant digits of floats.
const DIGITS: usize = 6;

/// Why a text is not a valid document.
#[derive(Debug)]
#[non_exhaustive]
pub enum DocumentError {
    /// Not JSON, or fields are missing or have another type.
    Json(serde_json::Error),
    /// A document of another kind or major version.
    Schema {
        /// Its schema.
        found: String,
        /// The expected schema.
        expected: &'static str,
    },
    /// Its parts contradict each other; the text has the location and the problem.
    Content(String),
}

impl fmt::Display for DocumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(error) => write!(f, "not a result document: {error}"),
            Self::Schema { found, expected } => {
                write!(f, "schema is {found:?}, expected {expected:?}")
            }
            Self::Content(what) => write!(f, "not a sound result document: {what}"),
        }
    }
}

impl error::Error for DocumentError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Json(error) => Some(error),
            Self::Schema { .. } | Self::Content(_) => None,
        }
    }
}

impl From<serde_json::Error> for DocumentError {
    fn from(error: serde_json::Error) -> Self {
        Self::Json(error)
    }
}

impl LabDocument {
    /// The document as indented JSON with a final newline. Floats are rounded to six significant
    /// digits, so that parsing and writing gives the same text. Each point of a curve has its own
    /// line.
    pub fn to_json(&self) -> String {
        write(self)
    }

    /// Parses and checks the output of [`LabDocument::to_json`]. Unknown fields are skipped,
    /// because they come from a later version of the same schema.
    pub fn from_json(text: &str) -> Result<Self, DocumentError> {
        let document: Self = read(text, Self::SCHEMA)?;
        document.check()?;
        Ok(document)
    }
}

impl SuiteDocument {
    /// The document as indented JSON with a final newline, like [`LabDocument::to_json`].
    pub fn to_json(&self) -> String {
        write(self)
    }

    /// Parses the output of [`SuiteDocument::to_json`] and checks each scenario, like
    /// [`LabDocument::from_json`].
    pub fn from_json(text: &str) -> Result<Self, DocumentError> {
        let document: Self = read(text, Self::SCHEMA)?;
        document.scenarios.iter().try_for_each(LabDocument::check)?;
        Ok(document)
    }
}

impl GetDocument {
    /// The document as indented JSON with a final newline, like [`LabDocument::to_json`].
    pub fn to_json(&self) -> String {
        write(self)
    }
}

impl ListenDocument {
    /// The document as indented JSON with a final newline, like [`LabDocument::to_json`].
    pub fn to_json(&self) -> String {
        write(self)
    }
}

fn write(document: &impl Serialize) -> String {
    let mut out = Vec::new();
    let mut writer = serde_json::Serializer::with_formatter(&mut out, JsonLayout::default());
    document.serialize(&mut writer).expect("plain structs into memory");
    out.push(b'\n');
    String::from_utf8(out).expect("JSON is UTF-8")
}

fn read<T: DeserializeOwned>(text: &str, expected: &'static str) -> Result<T, DocumentError> {
    #[derive(Deserialize)]
    struct DocumentHeader {
        schema: String,
    }
    let header: DocumentHeader = serde_json::from_str(text)?;
    if header.schema != expected {
        return Err(DocumentError::Schema { found: header.schema, expected });
    }
    Ok(serde_json::from_str(text)?)
}

/// [`PrettyFormatter`] with short floats and nested arrays on one line.
#[derive(Default)]
struct JsonLayout {
    pretty: PrettyFormatter<'static>,
    /// Open arrays and objects, outermost first.
    open: Vec<OpenScope>,
}

#[derive(Clone, Copy, PartialEq)]
enum OpenScope {
    Object,
    Array,
    /// An array on one line.
    Inline,
}

impl JsonLayout {
    fn is_inline(&self) -> bool {
        self.open.last() == Some(&OpenScope::Inline)
    }
}

impl Formatter for JsonLayout {
    fn write_f64<W: ?Sized + io::Write>(&mut self, out: &mut W, value: f64) -> io::Result<()> {
        out.write_all(text(value + 0.0, DIGITS).as_bytes()) // + 0.0 turns -0 into 0
    }
    fn begin_array<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        let inside = matches!(self.open.last(), Some(OpenScope::Array | OpenScope::Inline));
        self.open.push(if inside { OpenScope::Inline } else { OpenScope::Array });
        if inside { out.write_all(b"[") } else { self.pretty.begin_array(out) }
    }
    fn end_array<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        let inline = self.open.pop() == Some(OpenScope::Inline);
        if inline { out.write_all(b"]") } else { self.pretty.end_array(out) }
    }
    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> io::Result<()> {
        match (self.is_inline(), first) {
            (true, true) => Ok(()),
            (true, false) => out.write_all(b", "),
            (false, _) => self.pretty.begin_array_value(out, first),
        }
    }
    fn end_array_value<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        if self.is_inline() { Ok(()) } else { self.pretty.end_array_value(out) }
    }
    fn begin_object<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.open.push(OpenScope::Object);
        self.pretty.begin_object(out)
    }
    fn end_object<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.open.pop();
        self.pretty.end_object(out)
    }
    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.pretty.begin_object_key(out, first)
    }
    fn begin_object_value<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.pretty.begin_object_value(out)
    }
    fn end_object_value<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.pretty.end_object_value(out)
    }
}

#[cfg(test)]
mod tests {
    use uncork_testkit::assert_schema;

    use super::*;

    #[test]
    fn schemas_are_current() {
        assert_schema!(LabDocument, "lab-2", "Results of `uncork lab run` and `uncork compare`");
        assert_schema!(SuiteDocument, "suite-2", "Results of `uncork lab run` of a suite");
        assert_schema!(GetDocument, "play.get-1", "Results of `uncork play get`");
        assert_schema!(ListenDocument, "play.audio-1", "Results of `uncork play audio`");
    }

    #[test]
    fn floats_keep_six_digits_and_lose_noise() {
        let mut document = LabDocument::from_json(include_str!("../tests/lab.json")).unwrap();
        let metrics = &mut document.cells[0].classes[0].metrics;
        for (metric, value) in metrics.iter_mut().zip([0.1 + 0.2, 40.0, -0.0]) {
            metric.estimate.value = value;
        }
        let text = document.to_json();
        for value in ["0.3", "40", "0"] {
            assert!(text.contains(&format!("\"value\": {value},")), "{value}");
        }
    }

    #[test]
    fn invalid_json_is_rejected() {
        assert!(matches!(LabDocument::from_json("{"), Err(DocumentError::Json(_))));
    }
}
