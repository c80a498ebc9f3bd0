//! Priorities of responses (RFC 9218).

use http::HeaderMap;
use sfv::{BareItem, Dictionary, ListEntry, Parser};

/// The priority parameters of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    /// From 0, the most urgent, to 7.
    pub urgency: u8,
    /// The client can use parts of the response while others are missing.
    pub incremental: bool,
}

/// The defaults of RFC 9218 §4.
impl Default for Priority {
    fn default() -> Self {
        Self { urgency: 3, incremental: false }
    }
}

/// Stack priorities per urgency. Streams with a larger index share the lowest one.
const BAND: i32 = 1 << 27;

impl Priority {
    /// The value of the `Priority` header, or `None` without one. Unknown parameters are ignored, as is a
    /// malformed header as a whole (RFC 9218 §5, RFC 9651 §4.2).
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let mut values = headers.get_all("priority").iter();
        let first = values.next()?.as_bytes();
        let Some(second) = values.next() else { return Some(Self::parse(first)) };
        // Several field lines form one list.
        let mut joined = first.to_vec();
        for value in std::iter::once(second).chain(values) {
            joined.push(b',');
            joined.extend_from_slice(value.as_bytes());
        }
        Some(Self::parse(&joined))
    }

    /// Parses a `Priority` header.
    pub fn parse(value: &[u8]) -> Self {
        let members = Parser::new(value).parse::<Dictionary>().unwrap_or_default();
        let item = |key: &str| match members.get(key) {
            Some(ListEntry::Item(item)) => Some(&item.bare_item),
            _ => None,
        };
        let urgency = item("u").and_then(BareItem::as_integer);
        let urgency = urgency.and_then(|it| u8::try_from(i64::from(it)).ok());
        Self {
            urgency: urgency.filter(|it| *it < 8).unwrap_or(Self::default().urgency),
            incremental: item("i").and_then(BareItem::as_boolean).unwrap_or(false),
        }
    }

    /// The stack priority of a connection's `index`-th stream: higher goes first, equal ones share. Within
    /// an urgency, non-incremental responses come first, in the order of their requests, then incremental
    /// ones share (RFC 9218 §10). A client without the header most likely does not support priorities: its
    /// responses share, as over HTTP/2.
    pub(crate) fn order(priority: Option<Self>, index: u64) -> i32 {
        let Self { urgency, incremental } =
            priority.unwrap_or(Self { incremental: true, ..Self::default() });
        let band = (3 - i32::from(urgency.min(7))) * BAND;
        let last = BAND - 2;
        let place = i32::try_from(index).map_or(last, |index| index.min(last));
        if incremental { band } else { band + (BAND - 1 - place) }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn priority(urgency: u8, incremental: bool) -> Priority {
        Priority { urgency, incremental }
    }

    #[test]
    fn the_examples_of_rfc_9218() {
        assert_eq!(Priority::parse(b"u=0"), priority(0, false));
        assert_eq!(Priority::parse(b"u=5, i"), priority(5, true));
        assert_eq!(Priority::parse(b"u=1,i"), priority(1, true));
        assert_eq!(Priority::parse(b"i"), priority(3, true));
        assert_eq!(Priority::parse(b""), priority(3, false));
    }

    #[test]
    fn unknown_and_out_of_range_parameters_are_ignored() {
        let cases: [(&[u8], Priority); 11] = [
            (b"u=2, x=\"a, u=7\", i", priority(2, true)),
            (b"u=2;a=b;c, i=?0", priority(2, false)),
            (b"x=(1 \"b\";q ?1), u=6", priority(6, false)),
            (b"x=:aGk=:, y=tok/en:1, u=4", priority(4, false)),
            (b"x=1.25, u=4", priority(4, false)),
            (b"u=8, i", priority(3, true)),
            (b"u=-1", priority(3, false)),
            (b"u=1.0", priority(3, false)),
            (b"u, i=1", priority(3, false)),
            (b"u=1, u=6", priority(6, false)),
            (b"  u=1 \t,\t i  ", priority(1, true)),
        ];
        for (text, priority) in cases {
            assert_eq!(Priority::parse(text), priority, "{}", text.escape_ascii());
        }
    }

    #[test]
    fn a_malformed_field_is_ignored_completely() {
        let cases: [&[u8]; 15] = [
            b"u=0,",
            b"u=0, x=:u=:",
            b",u=0",
            b"u=0 i",
            b"u=0, U=1",
            b"u=0, =",
            b"u=",
            b"u=0, x=\"open",
            b"u=0, x=\"\\n\"",
            b"u=0, x=(1",
            b"u=0, x=(1,2)",
            b"u=0, x=?2",
            b"u=0, x=1.2345",
            b"u=0, x=1234567890123456",
            b"u=0, \xff",
        ];
        for text in cases {
            assert_eq!(Priority::parse(text), Priority::default(), "{}", text.escape_ascii());
        }
    }

    #[test]
    fn several_field_lines_form_one_list() {
        let mut headers = HeaderMap::new();
        assert_eq!(Priority::of(&headers), None);
        headers.append("priority", HeaderValue::from_static("u=1"));
        headers.append("priority", HeaderValue::from_static("i"));
        assert_eq!(Priority::of(&headers), Some(priority(1, true)));
    }

    #[test]
    fn urgency_comes_first_then_the_order_of_requests() {
        let order = |urgency, incremental, index| {
            Priority::order(Some(priority(urgency, incremental)), index)
        };
        for urgency in 0..7 {
            assert!(order(urgency, true, 0) > order(urgency + 1, false, 0));
        }
        assert!(order(3, false, 0) > order(3, false, 1));
        assert!(order(3, false, u64::MAX) > order(3, true, 0));
        assert_eq!(order(3, true, 0), order(3, true, 9));
        assert_eq!(Priority::order(None, 0), Priority::order(None, 9));
        assert!(order(7, true, 0) < Priority::order(None, 0));
    }
}
