//! Which response goes first (RFC 9218).

use http::HeaderMap;

/// What a client says of a request's priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    /// From 0, the most urgent, to 7.
    pub urgency: u8,
    /// The client can use parts of the response while others are missing.
    pub incremental: bool,
}

/// What a request has that says nothing else (RFC 9218 §4).
impl Default for Priority {
    fn default() -> Self {
        Self { urgency: 3, incremental: false }
    }
}

/// Orders of one urgency. Streams beyond so many of a connection are not told apart.
const BAND: i32 = 1 << 27;

impl Priority {
    /// What the `Priority` header says; `None` if there is none. What it says besides is ignored, and so
    /// is all of one that is not well-formed (RFC 9218 §5, RFC 9651 §4.2).
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let mut values = headers.get_all("priority").iter();
        let first = values.next()?.as_bytes();
        let Some(second) = values.next() else { return Some(Self::parse(first)) };
        // Several fields are one list.
        let mut joined = first.to_vec();
        for value in std::iter::once(second).chain(values) {
            joined.push(b',');
            joined.extend_from_slice(value.as_bytes());
        }
        Some(Self::parse(&joined))
    }

    /// Reads a `Priority` header.
    pub fn parse(value: &[u8]) -> Self {
        let mut priority = Self::default();
        let mut rest = Text(value);
        rest.skip(b" ");
        while !rest.0.is_empty() {
            let Some((key, item)) = rest.member() else { return Self::default() };
            match (key, item) {
                (b"u", Item::Integer(urgency)) => {
                    priority.urgency = u8::try_from(urgency).ok().filter(|it| *it < 8).unwrap_or(3);
                }
                (b"u", _) => priority.urgency = 3,
                (b"i", Item::Boolean(incremental)) => priority.incremental = incremental,
                (b"i", _) => priority.incremental = false,
                _ => {}
            }
            rest.skip(b" \t");
            if rest.0.is_empty() {
                break;
            }
            if !rest.take(b',') {
                return Self::default();
            }
            rest.skip(b" \t");
            // A comma is followed by a member.
            if rest.0.is_empty() {
                return Self::default();
            }
        }
        priority
    }

    /// The place of the `index`-th stream of a connection: higher goes first, equal ones share. Of one
    /// urgency, responses that are of use only when they are complete come one after the other in the
    /// order of their requests, then those that are incremental share (RFC 9218 §10). A client that says
    /// nothing most likely does not know of priorities: its responses share, as they do over HTTP/2.
    pub(crate) fn order(priority: Option<Self>, index: u64) -> i32 {
        let Self { urgency, incremental } =
            priority.unwrap_or(Self { incremental: true, ..Self::default() });
        let band = (3 - i32::from(urgency.min(7))) * BAND;
        let last = BAND - 2;
        let place = i32::try_from(index).map_or(last, |index| index.min(last));
        if incremental { band } else { band + (BAND - 1 - place) }
    }
}

/// What the value of a dictionary's member is, as far as anybody asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Item {
    Boolean(bool),
    Integer(i64),
    Other,
}

/// What is left of a structured field (RFC 9651 §4.2).
struct Text<'a>(&'a [u8]);

impl<'a> Text<'a> {
    fn peek(&self) -> Option<u8> {
        self.0.first().copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let is_there = self.peek() == Some(byte);
        if is_there {
            self.0 = &self.0[1..];
        }
        is_there
    }

    fn skip(&mut self, bytes: &[u8]) {
        self.take_while(|byte| bytes.contains(&byte));
    }

    fn take_while(&mut self, fits: impl Fn(u8) -> bool) -> &'a [u8] {
        let end = self.0.iter().position(|byte| !fits(*byte)).unwrap_or(self.0.len());
        let (taken, rest) = self.0.split_at(end);
        self.0 = rest;
        taken
    }

    fn member(&mut self) -> Option<(&'a [u8], Item)> {
        let key = self.key()?;
        let item = if self.take(b'=') { self.item_or_list()? } else { Item::Boolean(true) };
        self.parameters()?;
        Some((key, item))
    }

    fn key(&mut self) -> Option<&'a [u8]> {
        self.peek().filter(|byte| byte.is_ascii_lowercase() || *byte == b'*')?;
        Some(self.take_while(|byte| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-.*".contains(&byte)
        }))
    }

    fn parameters(&mut self) -> Option<()> {
        while self.take(b';') {
            self.skip(b" ");
            self.key()?;
            if self.take(b'=') {
                self.item()?;
            }
        }
        Some(())
    }

    fn item_or_list(&mut self) -> Option<Item> {
        if !self.take(b'(') {
            return self.item();
        }
        loop {
            self.skip(b" ");
            if self.take(b')') {
                return Some(Item::Other);
            }
            self.item()?;
            self.parameters()?;
            self.peek().filter(|byte| b" )".contains(byte))?;
        }
    }

    fn item(&mut self) -> Option<Item> {
        match self.peek()? {
            b'?' => self.boolean(),
            b'-' | b'0'..=b'9' => self.number(),
            b'"' => self.string(),
            b'@' => {
                self.0 = &self.0[1..];
                matches!(self.number()?, Item::Integer(_)).then_some(Item::Other)
            }
            b'%' => self.display_string(),
            b':' => {
                self.0 = &self.0[1..];
                self.take_while(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte));
                self.take(b':').then_some(Item::Other)
            }
            byte if byte.is_ascii_alphabetic() || byte == b'*' => {
                self.take_while(|byte| {
                    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/".contains(&byte)
                });
                Some(Item::Other)
            }
            _ => None,
        }
    }

    fn boolean(&mut self) -> Option<Item> {
        self.take(b'?');
        match (self.take(b'1'), self.take(b'0')) {
            (true, false) => Some(Item::Boolean(true)),
            (false, true) => Some(Item::Boolean(false)),
            _ => None,
        }
    }

    /// At most 15 digits, or 12 and up to 3 behind a point.
    fn number(&mut self) -> Option<Item> {
        let is_negative = self.take(b'-');
        let digits = self.take_while(|byte| byte.is_ascii_digit());
        if digits.is_empty() || digits.len() > 15 {
            return None;
        }
        if self.take(b'.') {
            let fraction = self.take_while(|byte| byte.is_ascii_digit());
            return (digits.len() <= 12 && (1..=3).contains(&fraction.len()))
                .then_some(Item::Other);
        }
        let number = digits.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0'));
        Some(Item::Integer(if is_negative { -number } else { number }))
    }

    /// Text in UTF-8, whose bytes beyond ASCII are escaped (RFC 9651 §4.2.10).
    fn display_string(&mut self) -> Option<Item> {
        self.0 = self.0.strip_prefix(b"%\"")?;
        let mut text = Vec::new();
        loop {
            let plain = |byte| matches!(byte, 0x20..=0x7e) && byte != b'"' && byte != b'%';
            text.extend_from_slice(self.take_while(plain));
            if self.take(b'"') {
                return std::str::from_utf8(&text).is_ok().then_some(Item::Other);
            }
            let [b'%', high, low, rest @ ..] = self.0 else { return None };
            let digit =
                |byte: &u8| char::from(*byte).to_digit(16).filter(|_| !byte.is_ascii_uppercase());
            text.push((digit(high)? << 4 | digit(low)?) as u8);
            self.0 = rest;
        }
    }

    fn string(&mut self) -> Option<Item> {
        self.take(b'"');
        loop {
            self.take_while(|byte| matches!(byte, 0x20..=0x7e) && byte != b'"' && byte != b'\\');
            if self.take(b'"') {
                return Some(Item::Other);
            }
            if !self.take(b'\\') || !(self.take(b'"') || self.take(b'\\')) {
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn said(urgency: u8, incremental: bool) -> Priority {
        Priority { urgency, incremental }
    }

    #[test]
    fn the_examples_of_rfc_9218() {
        assert_eq!(Priority::parse(b"u=0"), said(0, false));
        assert_eq!(Priority::parse(b"u=5, i"), said(5, true));
        assert_eq!(Priority::parse(b"u=1,i"), said(1, true));
        assert_eq!(Priority::parse(b"i"), said(3, true));
        assert_eq!(Priority::parse(b""), said(3, false));
    }

    #[test]
    fn what_is_unknown_or_out_of_range_is_ignored() {
        let cases: [(&[u8], Priority); 11] = [
            (b"u=2, x=\"a, u=7\", i", said(2, true)),
            (b"u=2;a=b;c, i=?0", said(2, false)),
            (b"x=(1 \"b\";q ?1), u=6", said(6, false)),
            (b"x=:aGk=:, y=tok/en:1, u=4", said(4, false)),
            (b"x=1.25, u=4", said(4, false)),
            (b"u=8, i", said(3, true)),
            (b"u=-1", said(3, false)),
            (b"u=1.0", said(3, false)),
            (b"u, i=1", said(3, false)),
            (b"u=1, u=6", said(6, false)),
            (b"  u=1 \t,\t i  ", said(1, true)),
        ];
        for (text, priority) in cases {
            assert_eq!(Priority::parse(text), priority, "{}", text.escape_ascii());
        }
    }

    #[test]
    fn all_of_a_malformed_field_is_ignored() {
        let cases: [&[u8]; 14] = [
            b"u=0,",
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
    fn several_fields_are_one_list() {
        let mut headers = HeaderMap::new();
        assert_eq!(Priority::of(&headers), None);
        headers.append("priority", HeaderValue::from_static("u=1"));
        headers.append("priority", HeaderValue::from_static("i"));
        assert_eq!(Priority::of(&headers), Some(said(1, true)));
    }

    #[test]
    fn urgency_comes_first_then_the_order_of_requests() {
        let order =
            |urgency, incremental, index| Priority::order(Some(said(urgency, incremental)), index);
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
