//! Numbers of bytes.

use core::fmt;
use core::str::FromStr;

use crate::ParseError;
use crate::decimal::write_shortest;
use crate::error::Grammar;
use crate::quantity::{QuantityUnit, UnitPrefix, parse};

/// A number of bytes, such as the size of an object or a buffer. Written `10MB` (10^7), `64KiB` (65536),
/// `1500B`. Prefixes are case-insensitive; `b` for bytes is rejected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteCount(u64);

const GRAMMAR: Grammar = Grammar {
    name: "size",
    examples: "10MB, 2.5GB, 64KiB or 1500B",
    units: &["MB", "kB", "B"],
    smallest: "1B",
    largest: "18446744TB",
};

const DECIMAL: [&str; 5] = ["B", "kB", "MB", "GB", "TB"];
const BINARY: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];

impl ByteCount {
    /// Zero bytes.
    pub const ZERO: Self = Self(0);

    /// `n` bytes.
    pub const fn new(n: u64) -> Self {
        Self(n)
    }

    /// The number of bytes.
    pub const fn as_u64(self) -> u64 {
        self.0
    }
}

fn unit(name: &str) -> QuantityUnit {
    let (prefix, base) = UnitPrefix::split(name);
    match base {
        "B" => QuantityUnit::of(prefix.factor()),
        _ if base.eq_ignore_ascii_case("bytes") || base.eq_ignore_ascii_case("byte") => {
            QuantityUnit::of(prefix.factor())
        }
        "" | "b" if prefix.order == 0 => QuantityUnit::Ambiguous(["B", "kB"]),
        "" | "b" => QuantityUnit::Ambiguous([DECIMAL[prefix.order], BINARY[prefix.order]]),
        _ => QuantityUnit::Unknown,
    }
}

impl FromStr for ByteCount {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        parse(text, &GRAMMAR, unit).map(Self)
    }
}

#[expect(clippy::disallowed_types, reason = "only hosts write text")]
impl fmt::Display for ByteCount {
    /// The shortest form that parses back to the same value.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u128, &str); 9] = [
            (1 << 40, "TiB"),
            (1_000_000_000_000, "TB"),
            (1 << 30, "GiB"),
            (1_000_000_000, "GB"),
            (1 << 20, "MiB"),
            (1_000_000, "MB"),
            (1 << 10, "KiB"),
            (1_000, "kB"),
            (1, "B"),
        ];
        write_shortest(f, u128::from(self.0), &UNITS)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::string::ToString;

    use proptest::prelude::*;
    use uncork_testkit::assert_message;

    use super::*;

    fn error(text: &str) -> std::string::String {
        text.parse::<ByteCount>().unwrap_err().to_string()
    }

    #[test]
    fn reads_decimal_and_binary_prefixes() {
        for (text, bytes) in [
            ("10MB", 10_000_000),
            ("10mB", 10_000_000),
            ("64KiB", 65_536),
            ("64kiB", 65_536),
            ("64 kB", 64_000),
            ("1500B", 1500),
            (" 1500 bytes ", 1500),
            ("2.5GB", 2_500_000_000),
            ("1.5MiB", 1_572_864),
            ("1TiB", 1 << 40),
            ("0B", 0),
            ("18446744073709551615B", u64::MAX),
        ] {
            assert_eq!(text.parse(), Ok(ByteCount(bytes)), "{text}");
        }
    }

    #[test]
    fn errors_suggest_the_correct_form() {
        for text in ["64", "64k", "1.5Mb", "64Ki", "8b", "5mbit", "-5MB", "0.5B", "18446745TB"] {
            assert_message!(text, error(text));
        }
    }

    #[test]
    fn prints_the_shortest_form() {
        for (bytes, text) in [
            (0, "0B"),
            (1500, "1500B"),
            (1 << 16, "64KiB"),
            (64_000, "64kB"),
            (10_000_000, "10MB"),
            (2_500_000_000, "2.5GB"),
            (1_234_567, "1234567B"),
            (1 << 40, "1TiB"),
        ] {
            assert_eq!(ByteCount(bytes).to_string(), text);
        }
    }

    proptest! {
        #[test]
        fn printed_values_parse_back(bytes: u64, shift in 0_u32..64) {
            let count = ByteCount(bytes >> shift);
            prop_assert_eq!(count.to_string().parse(), Ok(count));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,24}") {
            if let Err(error) = text.parse::<ByteCount>() {
                prop_assert!(error.to_string().contains("; "));
            }
        }
    }
}
