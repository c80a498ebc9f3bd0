//! Common Media Client Data (CTA-5004, version 1): playback information that players send with requests.
//!
//! Numbers are rounded as the standard requires. Keys are in alphabetical order, each in one of four
//! headers, grouped by how often they change.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use http::{HeaderMap, HeaderName, HeaderValue};
use uncork_units::{Rate, Rng, TimeDelta};

use crate::ClientError;
use crate::sink::sha256;
use crate::target::Target;

/// How CMCD is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CmcdMode {
    /// In request headers.
    #[default]
    Headers,
    /// In the query of the URL, as in browsers, where headers would cause a CORS preflight request.
    Query,
    /// Not at all.
    Off,
}

/// Maximum length of `cid` and `sid`.
const MAX_LENGTH: usize = 64;

/// The data sent with the request for a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cmcd {
    /// `br`: encoded bitrate of the chunk.
    pub(crate) bitrate: Rate,
    /// `d`: duration of the chunk.
    pub(crate) duration: TimeDelta,
    /// `bl`: buffer length; also the deadline of the chunk (`dl`).
    pub(crate) buffer: TimeDelta,
    /// `bs`: the buffer was starved since the previous request.
    pub(crate) has_starved: bool,
    /// `su`: the chunk is needed urgently because playback is stalled or has not started.
    pub(crate) is_urgent: bool,
    /// `mtp`: throughput measured with the previous chunk.
    pub(crate) throughput: Option<Rate>,
    /// `rtp`: requested maximum throughput.
    pub(crate) enough: Option<Rate>,
    /// `cid`: content ID.
    pub(crate) content: String,
    /// `sid`: session ID.
    pub(crate) session: String,
}

enum CmcdValue {
    /// A key alone.
    True,
    Number(u64),
    Text(String),
    Token(&'static str),
}

impl Cmcd {
    /// All known fields, in alphabetical order.
    fn fields(&self) -> BTreeMap<&'static str, CmcdValue> {
        let mut fields = BTreeMap::from([
            ("bl", CmcdValue::Number(hundreds(self.buffer.as_nanos(), 1_000_000))),
            ("br", CmcdValue::Number(rounded(self.bitrate.bits_per_sec(), 1_000))),
            ("cid", CmcdValue::Text(self.content.clone())),
            ("d", CmcdValue::Number(rounded(self.duration.as_nanos(), 1_000_000))),
            ("ot", CmcdValue::Token("a")),
            // "Other": neither DASH nor HLS nor Smooth Streaming.
            ("sf", CmcdValue::Token("o")),
            ("sid", CmcdValue::Text(self.session.clone())),
            ("st", CmcdValue::Token("v")),
        ]);
        let rate = |rate: Rate| CmcdValue::Number(hundreds(rate.bits_per_sec(), 1_000));
        fields.extend(self.throughput.map(|throughput| ("mtp", rate(throughput))));
        fields.extend(self.enough.map(|enough| ("rtp", rate(enough))));
        // False booleans are omitted.
        fields.extend(self.has_starved.then_some(("bs", CmcdValue::True)));
        if self.is_urgent {
            fields.insert("su", CmcdValue::True);
        } else {
            let buffer = self.buffer.as_nanos();
            fields.insert("dl", CmcdValue::Number(hundreds(buffer, 1_000_000)));
        }
        fields
    }

    /// Adds the CMCD headers.
    pub(crate) fn add_to(&self, headers: &mut HeaderMap) {
        let mut groups: BTreeMap<&'static str, String> = BTreeMap::new();
        for (key, value) in self.fields() {
            push(groups.entry(header_of(key)).or_default(), key, &value);
        }
        for (name, text) in groups {
            if let Ok(value) = HeaderValue::try_from(text) {
                headers.insert(HeaderName::from_static(name), value);
            }
        }
    }

    /// `target` with the CMCD in its query.
    pub(crate) fn in_query(&self, target: &Target) -> Result<Target, ClientError> {
        let mut text = String::new();
        for (key, value) in self.fields() {
            push(&mut text, key, &value);
        }
        target.with_query("CMCD", &escaped(&text))
    }
}

/// The header of a key (CTA-5004 §3).
fn header_of(key: &str) -> &'static str {
    match key {
        "br" | "d" | "ot" | "tb" => "cmcd-object",
        "bl" | "dl" | "mtp" | "nor" | "nrr" | "su" => "cmcd-request",
        "bs" | "rtp" => "cmcd-status",
        _ => "cmcd-session",
    }
}

fn push(text: &mut String, key: &str, value: &CmcdValue) {
    if !text.is_empty() {
        text.push(',');
    }
    let _infallible = write!(text, "{key}{value}");
}

impl fmt::Display for CmcdValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::True => Ok(()),
            Self::Number(number) => write!(f, "={number}"),
            Self::Token(token) => write!(f, "={token}"),
            Self::Text(text) => {
                let text = text.replace('\\', "\\\\").replace('"', "\\\"");
                write!(f, "=\"{text}\"")
            }
        }
    }
}

/// `value` in units of `unit`, rounded to the nearest.
fn rounded(value: u64, unit: u64) -> u64 {
    value.saturating_add(unit / 2) / unit
}

/// `value` in units of `unit`, rounded to the nearest hundred.
fn hundreds(value: u64, unit: u64) -> u64 {
    rounded(value, unit * 100) * 100
}

/// Percent-encodes `text` for a query, except unreserved characters (RFC 3986 §2.3).
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(byte.into());
        } else {
            let _infallible = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// The content ID of `target`: its path, or the SHA-256 of a path that is too long.
pub(crate) fn content_id(target: &Target) -> String {
    let path = target.path();
    if path.len() <= MAX_LENGTH { path.to_owned() } else { sha256(path.as_bytes()) }
}

/// A random session ID: a version 4 UUID (RFC 9562 §5.4).
pub(crate) fn session_id(rng: &mut Rng) -> String {
    let (high, low) = (rng.next_u64(), rng.next_u64());
    let high = high & !0xf000 | 0x4000;
    let low = low & !(3 << 62) | 2 << 62;
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xffff,
        low >> 48,
        low & 0xffff_ffff_ffff
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Cmcd {
        Cmcd {
            bitrate: Rate::from_bits_per_sec(160_400),
            duration: TimeDelta::from_micros(25_600_500),
            buffer: TimeDelta::from_millis(30_049),
            has_starved: false,
            is_urgent: false,
            throughput: Some(Rate::from_bits_per_sec(12_349_999)),
            enough: None,
            content: "/a.ogg".to_owned(),
            session: "me".to_owned(),
        }
    }

    fn headers(cmcd: &Cmcd) -> Vec<(String, String)> {
        let mut headers = HeaderMap::new();
        cmcd.add_to(&mut headers);
        let text = |value: &HeaderValue| value.to_str().expect("text").to_owned();
        let all = headers.iter().map(|(name, value)| (name.to_string(), text(value)));
        let mut all: Vec<_> = all.collect();
        all.sort();
        all
    }

    /// §3: `bl` and `dl` to the nearest 100 ms, `mtp` and `rtp` to the nearest 100 kbit/s, `br` in kbit/s,
    /// `d` in ms; each key in its header, in order.
    #[test]
    fn each_key_is_in_its_header_and_rounded() {
        let said = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            headers(&sample()),
            [
                said("cmcd-object", "br=160,d=25601,ot=a"),
                said("cmcd-request", "bl=30000,dl=30000,mtp=12300"),
                said("cmcd-session", "cid=\"/a.ogg\",sf=o,sid=\"me\",st=v"),
            ]
        );
        let starved = Cmcd {
            buffer: TimeDelta::from_millis(50),
            has_starved: true,
            is_urgent: true,
            throughput: None,
            enough: Some(Rate::from_bits_per_sec(450_000)),
            ..sample()
        };
        assert_eq!(
            headers(&starved)[1..3],
            [said("cmcd-request", "bl=100,su"), {
                said("cmcd-session", "cid=\"/a.ogg\",sf=o,sid=\"me\",st=v")
            }]
        );
        assert_eq!(headers(&starved)[3], said("cmcd-status", "bs,rtp=500"));
    }

    /// §2: a true boolean is just its key, strings are quoted, tokens are not; the whole is percent-encoded.
    #[test]
    fn a_query_has_all_fields_in_order_and_escaped() {
        let target: Target = "http://a/b?c=d".parse().expect("an address");
        let cmcd = Cmcd { has_starved: true, content: "\"\\".to_owned(), ..sample() };
        let asked = cmcd.in_query(&target).expect("an address").to_string();
        assert_eq!(
            asked,
            "http://a/b?c=d&CMCD=bl%3D30000%2Cbr%3D160%2Cbs%2Ccid%3D%22%5C%22%5C%5C%22%2Cd%3D25601\
             %2Cdl%3D30000%2Cmtp%3D12300%2Cot%3Da%2Csf%3Do%2Csid%3D%22me%22%2Cst%3Dv"
        );
    }

    #[test]
    fn content_ids_have_a_maximum_length() {
        let id = |length: usize| {
            let target: Target = format!("http://a/{}", "x".repeat(length)).parse().expect("one");
            content_id(&target)
        };
        assert_eq!(id(63).len(), 64);
        assert_eq!(id(64).len(), 64);
        assert!(id(63).starts_with('/') && !id(64).starts_with('/'));
        assert_ne!(id(64), id(65));
    }

    #[test]
    fn sessions_are_uuids_and_differ() {
        let mut rng = Rng::new(1, 0);
        let (one, other) = (session_id(&mut rng), session_id(&mut rng));
        assert_ne!(one, other);
        for id in [one, other] {
            let parts: Vec<&str> = id.split('-').collect();
            assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), [8, 4, 4, 4, 12]);
            assert!(parts[2].starts_with('4') && parts[3].starts_with(['8', '9', 'a', 'b']));
        }
        assert_eq!(session_id(&mut Rng::new(1, 0)), session_id(&mut Rng::new(1, 0)));
    }
}
