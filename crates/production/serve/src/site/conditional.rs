//! Requests that depend on what the client has already (RFC 9110 §13).

use std::time::SystemTime;

use http::{HeaderMap, HeaderName, HeaderValue, header};

/// What identifies the state of a representation.
#[derive(Clone, Debug)]
pub(super) struct Validators {
    pub(super) etag: Option<HeaderValue>,
    /// To the second.
    pub(super) modified: SystemTime,
}

/// What the preconditions come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConditionalOutcome {
    /// Send the representation.
    Send {
        /// A `Range` header counts.
        ranges: bool,
    },
    NotModified,
    Failed,
}

impl Validators {
    /// Evaluates in the order of RFC 9110 §13.2.2.
    pub(super) fn evaluate(&self, headers: &HeaderMap) -> ConditionalOutcome {
        let (matched, unmodified) = (header::IF_MATCH, header::IF_UNMODIFIED_SINCE);
        let failed = if headers.contains_key(&matched) {
            !self.is_listed(headers, matched, false)
        } else {
            date(headers, unmodified).is_some_and(|since| self.modified > since)
        };
        if failed {
            return ConditionalOutcome::Failed;
        }
        let (none_match, modified) = (header::IF_NONE_MATCH, header::IF_MODIFIED_SINCE);
        let known = if headers.contains_key(&none_match) {
            self.is_listed(headers, none_match, true)
        } else {
            date(headers, modified).is_some_and(|since| self.modified <= since)
        };
        if known {
            return ConditionalOutcome::NotModified;
        }
        ConditionalOutcome::Send { ranges: self.continues(headers) }
    }

    /// Whether `If-Range` lets a range be sent. A date never does: the file may have changed twice
    /// within its second (RFC 9110 §8.8.2.2), and every response has an entity tag to ask with.
    fn continues(&self, headers: &HeaderMap) -> bool {
        headers.get(header::IF_RANGE).is_none_or(|value| self.etag.as_ref() == Some(value))
    }

    /// Whether a list of entity tags has ours. They have neither commas nor quotes inside, so that a
    /// list may be cut at any comma.
    fn is_listed(&self, headers: &HeaderMap, name: HeaderName, is_weak: bool) -> bool {
        let Some(etag) = &self.etag else { return false };
        let values = headers.get_all(name);
        let mut tags = values.iter().flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
        tags.any(|tag| {
            let tag = tag.trim_ascii();
            let opaque = tag.strip_prefix(b"W/").filter(|_| is_weak).unwrap_or(tag);
            opaque == b"*" || opaque == etag.as_bytes()
        })
    }
}

/// A date that can be read; others are as if they were not there (RFC 9110 §13.1.3, §13.1.4).
fn date(headers: &HeaderMap, name: HeaderName) -> Option<SystemTime> {
    httpdate::parse_http_date(headers.get(name)?.to_str().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Modified at 06 Nov 1994 08:49:37, the date of RFC 9110 §5.6.7.
    fn evaluate(headers: &[(&'static str, &'static str)]) -> ConditionalOutcome {
        let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        let validators = Validators { etag: Some(HeaderValue::from_static("\"a-1\"")), modified };
        let headers = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        validators.evaluate(&headers.collect())
    }

    const SEND: ConditionalOutcome = ConditionalOutcome::Send { ranges: true };
    const AT: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const BEFORE: &str = "Sun, 06 Nov 1994 08:49:36 GMT";

    #[test]
    fn entity_tags_are_compared_as_each_header_asks() {
        for known in ["\"a-1\"", "W/\"a-1\"", "*", "\"x\", \"a-1\"", "\"x\",W/\"a-1\" , \"y\""] {
            assert_eq!(
                evaluate(&[("if-none-match", known)]),
                ConditionalOutcome::NotModified,
                "{known}"
            );
        }
        for other in ["\"a-2\"", "a-1", "", "\"a-1", "w/\"a-1\""] {
            assert_eq!(evaluate(&[("if-none-match", other)]), SEND, "{other}");
            assert_eq!(evaluate(&[("if-match", other)]), ConditionalOutcome::Failed, "{other}");
        }
        assert_eq!(evaluate(&[("if-match", "\"a-1\"")]), SEND);
        assert_eq!(evaluate(&[("if-match", "*")]), SEND);
        assert_eq!(
            evaluate(&[("if-match", "W/\"a-1\"")]),
            ConditionalOutcome::Failed,
            "strong comparison"
        );
    }

    #[test]
    fn dates_count_where_there_are_no_tags() {
        assert_eq!(evaluate(&[("if-modified-since", AT)]), ConditionalOutcome::NotModified);
        assert_eq!(evaluate(&[("if-modified-since", BEFORE)]), SEND);
        assert_eq!(evaluate(&[("if-unmodified-since", AT)]), SEND);
        assert_eq!(evaluate(&[("if-unmodified-since", BEFORE)]), ConditionalOutcome::Failed);
        let both = [("if-none-match", "\"x\""), ("if-modified-since", AT)];
        assert_eq!(evaluate(&both), SEND);
        assert_eq!(evaluate(&[("if-match", "*"), ("if-unmodified-since", BEFORE)]), SEND);
        let (rfc850, asctime) = ("Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994");
        assert_eq!(evaluate(&[("if-modified-since", rfc850)]), ConditionalOutcome::NotModified);
        assert_eq!(evaluate(&[("if-modified-since", asctime)]), ConditionalOutcome::NotModified);
        for unreadable in ["yesterday", "", "Sun, 99 Nov 1994 08:49:37 GMT"] {
            assert_eq!(evaluate(&[("if-modified-since", unreadable)]), SEND, "{unreadable}");
            assert_eq!(evaluate(&[("if-unmodified-since", unreadable)]), SEND, "{unreadable}");
        }
    }

    #[test]
    fn ranges_continue_the_same_content_only() {
        assert_eq!(evaluate(&[("if-range", "\"a-1\"")]), SEND);
        for other in ["\"a-2\"", "W/\"a-1\"", AT] {
            assert_eq!(
                evaluate(&[("if-range", other)]),
                ConditionalOutcome::Send { ranges: false },
                "{other}"
            );
        }
    }
}
