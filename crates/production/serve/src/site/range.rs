//! Byte ranges (RFC 9110 §14).

use std::ops::Range;

/// More ranges than this in one request are not worth their headers (RFC 9110 §17.15).
const MAX_RANGES: usize = 64;

/// What a `Range` header asks of a representation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ranges {
    /// All of it: the header is not understood, or asks for what is better sent whole.
    Whole,
    /// None of what is asked for exists.
    Unsatisfiable,
    /// These parts, in the order asked for; neither empty nor overlapping.
    Parts(Vec<Range<u64>>),
}

impl Ranges {
    /// Reads a header's value, for a representation of `length` bytes.
    pub(super) fn parse(value: &[u8], length: u64) -> Self {
        let Some(specs) = std::str::from_utf8(value).ok().and_then(specs) else {
            return Self::Whole;
        };
        let mut parts = Vec::new();
        for spec in specs.split(',').map(|spec| spec.trim_matches([' ', '\t'])) {
            // Empty elements of a list are nothing (RFC 9110 §5.6.1.2).
            if spec.is_empty() {
                continue;
            }
            match part(spec, length) {
                None => return Self::Whole,
                Some(part) if part.is_empty() => {}
                Some(part) => parts.push(part),
            }
        }
        match parts.len() {
            0 => Self::Unsatisfiable,
            1 => Self::Parts(parts),
            count if count > MAX_RANGES || overlap(&parts) => Self::Whole,
            _ => Self::Parts(parts),
        }
    }
}

fn specs(value: &str) -> Option<&str> {
    let (unit, specs) = value.split_once('=')?;
    unit.trim_matches([' ', '\t']).eq_ignore_ascii_case("bytes").then_some(specs)
}

/// `first-last`, `first-` or `-length`; empty if nothing of it exists.
fn part(spec: &str, length: u64) -> Option<Range<u64>> {
    let (first, last) = spec.split_once('-')?;
    if first.is_empty() {
        // The last bytes, at most all of them (RFC 9110 §14.1.2).
        return Some(length.saturating_sub(number(last)?)..length);
    }
    let first = number(first)?;
    let last = if last.is_empty() { u64::MAX } else { number(last)? };
    if last < first {
        return None;
    }
    let end = last.saturating_add(1).min(length);
    Some(first.min(end)..end)
}

/// Digits only; what does not fit is larger than any file.
fn number(digits: &str) -> Option<u64> {
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(digits.parse().unwrap_or(u64::MAX))
}

fn overlap(parts: &[Range<u64>]) -> bool {
    let mut sorted: Vec<_> = parts.iter().collect();
    sorted.sort_by_key(|part| part.start);
    sorted.windows(2).any(|pair| pair[0].end > pair[1].start)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(value: &str, length: u64) -> Ranges {
        Ranges::parse(value.as_bytes(), length)
    }

    fn one(start: u64, end: u64) -> Ranges {
        Ranges::Parts(std::iter::once(start..end).collect())
    }

    /// The examples of RFC 9110 §14.1.2, for 10000 bytes.
    #[test]
    fn the_examples_of_the_specification() {
        assert_eq!(parse("bytes=0-499", 10_000), one(0, 500));
        assert_eq!(parse("bytes=500-999", 10_000), one(500, 1000));
        assert_eq!(parse("bytes=-500", 10_000), one(9500, 10_000));
        assert_eq!(parse("bytes=9500-", 10_000), one(9500, 10_000));
        assert_eq!(parse("bytes=0-0,-1", 10_000), Ranges::Parts(vec![0..1, 9999..10_000]));
        assert_eq!(parse("bytes= 0-0, ,5-6,", 10_000), Ranges::Parts(vec![0..1, 5..7]));
        // These overlap, in part: the whole is not larger than the sum of the ranges.
        assert_eq!(parse("bytes=500-700,601-999", 10_000), Ranges::Whole);
    }

    #[test]
    fn what_goes_beyond_the_end_is_cut() {
        assert_eq!(parse("bytes=-20", 10), one(0, 10));
        assert_eq!(parse("bytes=-10", 10), one(0, 10));
        assert_eq!(parse("bytes=5-18446744073709551615", 10), one(5, 10));
        assert_eq!(parse("BYTES=5-99999999999999999999999", 10), one(5, 10));
        assert_eq!(parse("bytes=10-,3-3", 10), one(3, 4));
    }

    #[test]
    fn what_does_not_exist_is_unsatisfiable() {
        for value in ["bytes=10-", "bytes=10-20", "bytes=-0", "bytes=99999999999999999999-"] {
            assert_eq!(parse(value, 10), Ranges::Unsatisfiable, "{value}");
        }
        assert_eq!(parse("bytes=0-", 0), Ranges::Unsatisfiable);
    }

    #[test]
    fn what_is_not_understood_is_ignored() {
        for value in ["lines=1-2", "bytes", "bytes=a-", "bytes=1", "bytes=--1", "bytes=+1-2"] {
            assert_eq!(parse(value, 10), Ranges::Whole, "{value}");
        }
        assert_eq!(parse("bytes=5-2", 10), Ranges::Whole);
        let many: Vec<_> = (0..65).map(|n| format!("{}-{}", 2 * n, 2 * n)).collect();
        assert_eq!(parse(&format!("bytes={}", many.join(",")), 1000), Ranges::Whole);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        /// Against a slice that is indexed byte by byte.
        #[test]
        fn a_range_is_what_a_slice_has(
            length in 0_u64..50, first in 0_u64..60, last in prop::option::of(0_u64..60),
        ) {
            let content: Vec<u64> = (0..length).collect();
            let wanted = |at: &u64| *at >= first && last.is_none_or(|last| *at <= last);
            let expected: Vec<u64> = content.iter().copied().filter(wanted).collect();
            let value = format!("bytes={first}-{}", last.map_or(String::new(), |n| n.to_string()));
            let parsed = parse(&value, length);
            if last.is_some_and(|last| last < first) {
                prop_assert_eq!(parsed, Ranges::Whole);
            } else if expected.is_empty() {
                prop_assert_eq!(parsed, Ranges::Unsatisfiable);
            } else {
                prop_assert_eq!(parsed, one(expected[0], expected[expected.len() - 1] + 1));
            }
        }

        #[test]
        fn any_bytes_are_read(value in prop::collection::vec(any::<u8>(), 0..40), length: u64) {
            let specs = [b"bytes=".as_slice(), &value].concat();
            for value in [&value, &specs] {
                if let Ranges::Parts(parts) = Ranges::parse(value, length) {
                    prop_assert!(parts.iter().all(|part| part.start < part.end));
                    prop_assert!(parts.iter().all(|part| part.end <= length));
                }
            }
        }
    }
}
