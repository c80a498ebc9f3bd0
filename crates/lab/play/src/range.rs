//! Byte ranges of requests and responses (RFC 9110 §14).

use std::fmt;
use std::str::FromStr;

use http::header::CONTENT_RANGE;
use http::{HeaderMap, StatusCode};

use crate::ClientError;

/// A range of bytes, both ends inclusive: `0-511999`, or `512000-`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    /// The first byte.
    pub first: u64,
    /// The last byte; `None` for the end of the file.
    pub last: Option<u64>,
}

impl ByteRange {
    /// The range of `bytes` bytes starting at `first`.
    pub(crate) fn of(first: u64, bytes: u64) -> Self {
        Self { first, last: Some((first + bytes).saturating_sub(1)) }
    }

    /// Checks that a response has this range, or as much of it as the file has.
    pub(crate) fn check(self, status: StatusCode, headers: &HeaderMap) -> Result<(), ClientError> {
        let answered = headers.get(CONTENT_RANGE).and_then(|value| value.to_str().ok());
        let got = match (status, answered) {
            (StatusCode::PARTIAL_CONTENT, Some(got)) if self.is_answered_by(got) => return Ok(()),
            (StatusCode::PARTIAL_CONTENT, Some(got)) => got.to_owned(),
            (StatusCode::PARTIAL_CONTENT, None) => "a part without Content-Range".to_owned(),
            _ => "the whole file: the server gives no ranges".to_owned(),
        };
        Err(ClientError::Range { asked: self.to_string(), got })
    }

    fn is_answered_by(self, got: &str) -> bool {
        let parse = || {
            let (range, size) = got.strip_prefix("bytes ")?.split_once('/')?;
            let (first, last) = range.split_once('-')?;
            let size: u64 = size.parse().ok()?;
            Some((first.parse::<u64>().ok()?, last.parse::<u64>().ok()?, size))
        };
        parse().is_some_and(|(first, last, size)| {
            let end = self.last.unwrap_or(u64::MAX).min(size.saturating_sub(1));
            (first, last) == (self.first, end)
        })
    }
}

/// The value of the `Range` header.
impl fmt::Display for ByteRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bytes={}-", self.first)?;
        self.last.map_or(Ok(()), |last| write!(f, "{last}"))
    }
}

impl FromStr for ByteRange {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = "expected a range, such as 0-511999, or 512000- for everything from there";
        let (first, last) = text.split_once('-').ok_or(wrong)?;
        let number = |text: &str| {
            let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            if digits { text.parse::<u64>().map_err(|_| wrong) } else { Err(wrong) }
        };
        let first = number(first)?;
        let last = if last.is_empty() { None } else { Some(number(last)?) };
        if last.is_some_and(|last| last < first) {
            return Err("the last byte comes before the first: write 0-511999");
        }
        Ok(Self { first, last })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_round_trip() {
        for (text, header) in [("0-0", "bytes=0-0"), ("512000-", "bytes=512000-")] {
            let range: ByteRange = text.parse().expect("a range");
            assert_eq!(range.to_string(), header);
        }
        assert_eq!(ByteRange::of(10, 5).to_string(), "bytes=10-14");
        for wrong in ["", "-", "-5", "5-4", "a-b", "1", "1-2-3", "+1-2"] {
            assert!(wrong.parse::<ByteRange>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_response_must_have_the_requested_range() {
        let answer = |range: &str, status: u16, got: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_RANGE, got.parse().expect("a header"));
            let range: ByteRange = range.parse().expect("a range");
            range.check(StatusCode::from_u16(status).expect("a status"), &headers).is_ok()
        };
        assert!(answer("10-19", 206, "bytes 10-19/100"));
        assert!(answer("10-", 206, "bytes 10-99/100"));
        assert!(answer("90-109", 206, "bytes 90-99/100"), "no more than there is");
        assert!(!answer("10-19", 206, "bytes 10-18/100"));
        assert!(!answer("10-19", 206, "bytes 0-9/100"));
        assert!(!answer("10-19", 206, "bytes 10-19/*"), "the file's size is unknown");
        assert!(!answer("10-19", 200, "bytes 10-19/100"));
    }
}
