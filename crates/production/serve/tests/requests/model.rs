//! The correct response to a request, computed slowly, byte by byte, without the server's code.

use std::collections::BTreeSet;

use http::{HeaderMap, HeaderName};

/// A requested path, decoded; `None` if it is invalid.
pub(crate) fn decoded(raw: &str) -> Option<String> {
    let names = raw.strip_prefix('/')?.split('/').map(|name| {
        let mut bytes = Vec::new();
        let mut rest = name.as_bytes();
        while let Some((first, more)) = rest.split_first() {
            if *first == b'%' {
                let digits = std::str::from_utf8(more.get(..2)?).ok()?;
                let are_digits = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
                bytes.push(u8::from_str_radix(digits, 16).ok().filter(|_| are_digits)?);
                rest = &more[2..];
            } else {
                bytes.push(*first);
                rest = more;
            }
        }
        let name = String::from_utf8(bytes).ok()?;
        (!name.is_empty() && !name.starts_with('.') && !name.contains('/')).then_some(name)
    });
    let names: Option<Vec<String>> = names.collect();
    Some(format!("/{}", names?.join("/")))
}

/// The meaning of a `Range` header, with the bytes of each range.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Whole,
    Nothing,
    Parts(Vec<Vec<usize>>),
}

/// RFC 9110 §14.1.1, §14.2: a header that is not understood is ignored completely.
pub(crate) fn ranges(value: &[u8], length: usize) -> Wanted {
    let Some(parts) = understood(value, length) else { return Wanted::Whole };
    let parts: Vec<Vec<usize>> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    if parts.is_empty() {
        return Wanted::Nothing;
    }
    let all: usize = parts.iter().map(Vec::len).sum();
    let distinct: BTreeSet<usize> = parts.iter().flatten().copied().collect();
    // The server need not send more parts than these (§14.2, §17.15).
    if parts.len() > 64 || distinct.len() < all { Wanted::Whole } else { Wanted::Parts(parts) }
}

fn understood(value: &[u8], length: usize) -> Option<Vec<Vec<usize>>> {
    let value = std::str::from_utf8(value).ok()?;
    let at = value.find('=')?;
    let (unit, set) = (value[..at].trim_matches([' ', '\t']), &value[at + 1..]);
    if !unit.eq_ignore_ascii_case("bytes") {
        return None;
    }
    let mut parts = Vec::new();
    for one in set.split(',').map(|it| it.trim_matches([' ', '\t'])).filter(|it| !it.is_empty()) {
        let dash = one.find('-')?;
        let (first, last) = (&one[..dash], &one[dash + 1..]);
        if ![first, last].into_iter().all(|it| it.chars().all(|digit| digit.is_ascii_digit())) {
            return None;
        }
        let (first, last) = (number(first), number(last));
        let is_in = |at: &usize| match (first, last) {
            (None, Some(count)) => (*at as u128) + count >= length as u128,
            (Some(first), last) => {
                *at as u128 >= first && last.is_none_or(|last| *at as u128 <= last)
            }
            (None, None) => false,
        };
        match (first, last) {
            (None, None) => return None,
            (Some(first), Some(last)) if last < first => return None,
            _ => parts.push((0..length).filter(is_in).collect()),
        }
    }
    Some(parts)
}

/// Digits, if there are any. A number that is too large exceeds every file.
fn number(digits: &str) -> Option<u128> {
    (!digits.is_empty()).then(|| digits.parse().unwrap_or(u128::from(u64::MAX)))
}

/// The result of a request's conditions.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Conditions {
    Send {
        ranges: bool,
    },
    NotModified,
    Failed,
    /// A date that this model does not parse.
    Unknown,
}

/// RFC 9110 §13.2.2, for a file with this tag that was modified at 06 Nov 1994 08:49:37.
pub(crate) fn conditions(headers: &HeaderMap, etag: &[u8]) -> Conditions {
    let (matched, none_match) = (tags(headers, "if-match"), tags(headers, "if-none-match"));
    let (unmodified, modified) =
        (headers.get("if-unmodified-since"), headers.get("if-modified-since"));
    let of_dates =
        [unmodified.filter(|_| matched.is_none()), modified.filter(|_| none_match.is_none())];
    let mut order = Vec::new();
    for date in of_dates {
        order.push(match date.map(http::HeaderValue::as_bytes) {
            None => None,
            Some(b"Sun, 06 Nov 1994 08:49:36 GMT") => Some(-1),
            Some(b"Sun, 06 Nov 1994 08:49:37 GMT") => Some(0),
            Some(b"Sun, 06 Nov 1994 08:49:38 GMT") => Some(1),
            Some(other) if other.len() < 8 => None,
            Some(_) => return Conditions::Unknown,
        });
    }
    let is_failed = match matched {
        Some(tags) => !tags.iter().any(|tag| tag == b"*" || tag == etag),
        None => order[0] == Some(-1),
    };
    if is_failed {
        return Conditions::Failed;
    }
    let weak = [b"W/", etag].concat();
    let is_known = match none_match {
        Some(tags) => tags.iter().any(|tag| {
            let any = [b"*".as_slice(), b"W/*"].contains(&tag.as_slice());
            any || tag == etag || *tag == weak
        }),
        None => order[1].is_some_and(|order| order >= 0),
    };
    if is_known {
        return Conditions::NotModified;
    }
    let continues = headers.get("if-range").is_none_or(|tag| tag.as_bytes() == etag);
    Conditions::Send { ranges: continues }
}

fn tags(headers: &HeaderMap, name: &'static str) -> Option<Vec<Vec<u8>>> {
    let name = HeaderName::from_static(name);
    headers.contains_key(&name).then(|| {
        let values = headers.get_all(name).iter();
        let tags = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
        tags.map(|tag| tag.trim_ascii().to_vec()).collect()
    })
}
