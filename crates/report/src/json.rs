//! The JSON form of documents.

use std::{error, fmt, io};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::ser::{Formatter, PrettyFormatter};

use crate::document::CompareDocument;
use crate::lab::{LabDocument, SuiteDocument};
use crate::number::rounded;
use crate::play::{GetDocument, ListenDocument};

/// Significant digits of every float that is written.
const DIGITS: usize = 6;

/// Why a text is no document.
#[derive(Debug)]
#[non_exhaustive]
pub enum DocumentError {
    /// It is not JSON, or fields are missing or of another type.
    Json(serde_json::Error),
    /// It is a document of another kind or major version.
    Schema {
        /// What it calls itself.
        found: String,
        /// What was asked for.
        expected: &'static str,
    },
    /// Its parts contradict each other; the text says where and how.
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

impl CompareDocument {
    /// The document as indented JSON that ends in a newline. Floats are rounded to six significant
    /// digits, so that a text is stable: writing what was read gives the same text.
    pub fn to_json(&self) -> String {
        write(self)
    }

    /// Reads what [`CompareDocument::to_json`] wrote. Fields it does not know are skipped: they
    /// come from a later version of the same schema.
    pub fn from_json(text: &str) -> Result<Self, DocumentError> {
        read(text, Self::SCHEMA)
    }
}

impl LabDocument {
    /// The document as indented JSON that ends in a newline, like [`CompareDocument::to_json`].
    /// Points of curves take a line each.
    pub fn to_json(&self) -> String {
        write(self)
    }

    /// Reads what [`LabDocument::to_json`] wrote and checks it. Fields it does not know are skipped:
    /// they come from a later version of the same schema.
    pub fn from_json(text: &str) -> Result<Self, DocumentError> {
        let document: Self = read(text, Self::SCHEMA)?;
        document.check()?;
        Ok(document)
    }
}

impl SuiteDocument {
    /// The document as indented JSON that ends in a newline, like [`LabDocument::to_json`].
    pub fn to_json(&self) -> String {
        write(self)
    }

    /// Reads what [`SuiteDocument::to_json`] wrote, and checks each scenario, like
    /// [`LabDocument::from_json`].
    pub fn from_json(text: &str) -> Result<Self, DocumentError> {
        let document: Self = read(text, Self::SCHEMA)?;
        document.scenarios.iter().try_for_each(LabDocument::check)?;
        Ok(document)
    }
}

impl GetDocument {
    /// The document as indented JSON that ends in a newline, like [`CompareDocument::to_json`].
    pub fn to_json(&self) -> String {
        write(self)
    }
}

impl ListenDocument {
    /// The document as indented JSON that ends in a newline, like [`CompareDocument::to_json`].
    pub fn to_json(&self) -> String {
        write(self)
    }
}

fn write(document: &impl Serialize) -> String {
    let mut out = Vec::new();
    let mut writer = serde_json::Serializer::with_formatter(&mut out, Layout::default());
    document.serialize(&mut writer).expect("plain structs into memory");
    out.push(b'\n');
    String::from_utf8(out).expect("JSON is UTF-8")
}

fn read<T: DeserializeOwned>(text: &str, expected: &'static str) -> Result<T, DocumentError> {
    #[derive(Deserialize)]
    struct Header {
        schema: String,
    }
    let header: Header = serde_json::from_str(text)?;
    if header.schema != expected {
        return Err(DocumentError::Schema { found: header.schema, expected });
    }
    Ok(serde_json::from_str(text)?)
}

/// [`PrettyFormatter`] with short floats, and with arrays inside of arrays on one line.
#[derive(Default)]
struct Layout {
    pretty: PrettyFormatter<'static>,
    /// What is open, outermost first.
    open: Vec<Open>,
}

#[derive(Clone, Copy, PartialEq)]
enum Open {
    Object,
    Array,
    /// An array on one line.
    Inline,
}

impl Layout {
    fn is_inline(&self) -> bool {
        self.open.last() == Some(&Open::Inline)
    }
}

impl Formatter for Layout {
    fn write_f64<W: ?Sized + io::Write>(&mut self, out: &mut W, value: f64) -> io::Result<()> {
        write!(out, "{}", rounded(value, DIGITS) + 0.0) // + 0.0 turns -0 into 0
    }
    fn begin_array<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        let inside = matches!(self.open.last(), Some(Open::Array | Open::Inline));
        self.open.push(if inside { Open::Inline } else { Open::Array });
        if inside { out.write_all(b"[") } else { self.pretty.begin_array(out) }
    }
    fn end_array<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        let inline = self.open.pop() == Some(Open::Inline);
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
        self.open.push(Open::Object);
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
    use super::*;
    use crate::document::Workload;
    use crate::sample;

    #[test]
    fn reading_what_was_written_gives_it_back() {
        for document in [sample::transfers(), sample::mix()] {
            let text = document.to_json();
            let back = CompareDocument::from_json(&text).unwrap();
            assert_eq!(back, document);
            assert_eq!(back.to_json(), text);
        }
    }

    #[test]
    fn floats_keep_six_digits_and_lose_noise() {
        let mut document = sample::transfers();
        document.path.loss = 0.1 + 0.2;
        document.path.rtt_ms = 40.0;
        document.path.buffer_bdp = -0.0;
        let text = document.to_json();
        assert!(text.contains("\"loss\": 0.3,"), "{text}");
        assert!(text.contains("\"rtt_ms\": 40,"), "{text}");
        assert!(text.contains("\"buffer_bdp\": 0,"), "{text}");
    }

    #[test]
    fn refuses_another_schema_and_says_which() {
        let text = sample::transfers().to_json().replace("compare/1", "compare/2");
        let error = CompareDocument::from_json(&text).unwrap_err();
        assert_eq!(
            error.to_string(),
            "schema is \"uncork.compare/2\", expected \"uncork.compare/1\""
        );
        assert!(matches!(CompareDocument::from_json("{"), Err(DocumentError::Json(_))));
    }

    #[test]
    fn skips_fields_of_later_versions() {
        let document = sample::transfers();
        let text = document.to_json().replacen("\"seeds\"", "\"later\": [1],\n  \"seeds\"", 1);
        assert_eq!(CompareDocument::from_json(&text).unwrap(), document);
    }

    /// The names and their order are a contract with whoever reads the files.
    #[test]
    fn field_names_are_the_contract() {
        let text = sample::transfers().to_json();
        let keys = keys(&text);
        let expected = "schema version command path rate_bps rtt_ms loss loss_position \
             buffer_bytes buffer_packets buffer_bdp mss_bytes packet_bytes workload size_bytes \
             seeds results \
             cc flows completion_s p10 p50 p90 unfinished goodput_bps utilisation \
             rtt_ms min p50 p95 queue_ms p50 p95 retransmit_fraction timeouts jain \
             per_flow flow cc goodput_bps share completion_s";
        let expected: Vec<&str> = expected.split_whitespace().collect();
        assert_eq!(keys[..expected.len()], expected);
        assert_eq!(
            keys[keys.len() - 5..],
            ["verdict", "engine", "packets", "wall_s", "packets_per_s"]
        );
    }

    #[test]
    fn a_workload_is_its_only_field() {
        let text = serde_json::to_string(&Workload::Duration { duration_s: 30.0 }).unwrap();
        assert_eq!(text, r#"{"duration_s":30.0}"#);
    }

    /// The keys of indented JSON in the order of their appearance.
    fn keys(text: &str) -> Vec<&str> {
        text.lines()
            .filter_map(|line| line.trim().strip_prefix('"')?.split_once("\":"))
            .map(|(key, _)| key)
            .collect()
    }
}
