//! Data rates.

use core::fmt;
use core::str::FromStr;

use crate::decimal::write_shortest;
use crate::error::Grammar;
use crate::quantity::{QuantityUnit, UnitPrefix, parse};
use crate::wide::{mul_div, saturating_mul};
use crate::{ParseError, Ratio, TimeDelta};

const NANOS_PER_SEC: u64 = 1_000_000_000;

/// A data rate in whole bytes per second. Written in bits (`20mbit`, `64kbit/s`, `2.5Gbps`) or
/// bytes (`2.5MB/s`, `512KiB/s`). Prefixes are case-insensitive. Units are rejected if their `b` or
/// `B` could mean bits or bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

const GRAMMAR: Grammar = Grammar {
    name: "rate",
    examples: "20mbit, 2.5gbit, 64kbit or 2.5MB/s",
    units: &["mbit", "kbit", "MB/s"],
    smallest: "8bit",
    largest: "147573952tbit",
};

const BITS: [&str; 5] = ["bit", "kbit", "mbit", "gbit", "tbit"];
const BYTES: [&str; 5] = ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"];

impl Rate {
    /// Zero.
    pub const ZERO: Self = Self(0);
    /// The maximum, used as "unlimited".
    pub const MAX: Self = Self(u64::MAX);

    /// `n` bytes per second.
    pub const fn from_bytes_per_sec(n: u64) -> Self {
        Self(n)
    }

    /// `n` bits per second, rounded down to whole bytes.
    pub const fn from_bits_per_sec(n: u64) -> Self {
        Self(n / 8)
    }

    /// `n` megabits (10^6 bits) per second.
    pub const fn from_mbit(n: u64) -> Self {
        Self(saturating_mul(n, 125_000))
    }

    /// `bytes` per `interval`; [`Rate::ZERO`] for an empty interval, in which nothing was measured.
    pub const fn of(bytes: u64, interval: TimeDelta) -> Self {
        if interval.is_zero() {
            return Self::ZERO;
        }
        Self(mul_div(bytes, NANOS_PER_SEC, interval.as_nanos()))
    }

    /// Bytes per second.
    pub const fn bytes_per_sec(self) -> u64 {
        self.0
    }

    /// Bits per second.
    pub const fn bits_per_sec(self) -> u64 {
        saturating_mul(self.0, 8)
    }

    /// Whether the rate is zero.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Bytes transferred in `span`, rounded down.
    #[inline]
    pub const fn bytes_in(self, span: TimeDelta) -> u64 {
        mul_div(self.0, span.as_nanos(), NANOS_PER_SEC)
    }

    /// Time to transfer `bytes`, rounded down; [`TimeDelta::MAX`] at rate zero.
    #[inline]
    pub const fn time_for(self, bytes: u64) -> TimeDelta {
        if self.0 == 0 {
            return TimeDelta::MAX;
        }
        TimeDelta::from_nanos(mul_div(bytes, NANOS_PER_SEC, self.0))
    }

    /// This rate times `gain`.
    #[must_use]
    #[inline]
    pub const fn scaled(self, gain: Ratio) -> Self {
        Self(gain.of(self.0))
    }
}

fn unit(name: &str) -> QuantityUnit {
    let (prefix, base) = UnitPrefix::split(name);
    let bits = ["bit", "bits", "bit/s", "bits/s"];
    match base {
        "B/s" => QuantityUnit::of(prefix.factor()),
        _ if prefix.binary => QuantityUnit::Unknown,
        "bps" => QuantityUnit::Scale { num: prefix.factor(), den: 8 },
        _ if bits.iter().any(|name| base.eq_ignore_ascii_case(name)) => {
            QuantityUnit::Scale { num: prefix.factor(), den: 8 }
        }
        "" | "b" | "B" | "b/s" | "Bps" | "BPS" => {
            QuantityUnit::Ambiguous([BITS[prefix.order], BYTES[prefix.order]])
        }
        _ => QuantityUnit::Unknown,
    }
}

impl FromStr for Rate {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        parse(text, &GRAMMAR, unit).map(Self)
    }
}

#[expect(clippy::disallowed_types, reason = "only hosts write text")]
impl fmt::Display for Rate {
    /// The shortest form in bits that parses back to the same value.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u128, &str); 5] = [
            (1_000_000_000_000, "tbit"),
            (1_000_000_000, "gbit"),
            (1_000_000, "mbit"),
            (1_000, "kbit"),
            (1, "bit"),
        ];
        write_shortest(f, u128::from(self.0) * 8, &UNITS)
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
        text.parse::<Rate>().unwrap_err().to_string()
    }

    #[test]
    fn reads_bits_and_bytes() {
        for (text, bytes_per_sec) in [
            ("20mbit", 2_500_000),
            ("20Mbit/s", 2_500_000),
            ("20 Mbits/s", 2_500_000),
            ("20Mbps", 2_500_000),
            ("20MBIT", 2_500_000),
            ("2.5gbit", 312_500_000),
            ("64kbit", 8_000),
            ("0.1tbit", 12_500_000_000),
            ("2.5MB/s", 2_500_000),
            ("1KiB/s", 1_024),
            ("100bit", 12),
            ("0mbit", 0),
            ("147573952589676.412920mbit", u64::MAX),
        ] {
            assert_eq!(text.parse(), Ok(Rate(bytes_per_sec)), "{text}");
        }
    }

    #[test]
    fn errors_suggest_the_correct_form() {
        let others =
            ["20", "8b", "-1mbit", "fast", " ", "7bit", "147573953tbit", "1.0000000001mbit"];
        let ambiguous = ["20Mb", "20MB", "20M", "20Mb/s", "20MBps", "20MBPS"];
        let unknown = ["20ms", "20Mibit", "20MiB", "20m/s", "1e6bit"];
        for text in others.into_iter().chain(ambiguous).chain(unknown) {
            assert_message!(text, error(text));
        }
    }

    #[test]
    fn prints_the_shortest_form() {
        for (rate, text) in [
            (Rate::ZERO, "0bit"),
            (Rate::from_mbit(20), "20mbit"),
            (Rate::from_mbit(2_500), "2.5gbit"),
            (Rate::from_bits_per_sec(64_000), "64kbit"),
            (Rate::from_bits_per_sec(1_500_000), "1.5mbit"),
            (Rate::from_bytes_per_sec(1), "8bit"),
        ] {
            assert_eq!(rate.to_string(), text);
        }
    }

    #[test]
    fn rates_and_volumes_agree() {
        let rate = Rate::from_mbit(20);
        assert_eq!(rate.bytes_in(TimeDelta::from_millis(40)), 100_000);
        assert_eq!(rate.time_for(100_000), TimeDelta::from_millis(40));
        assert_eq!(Rate::of(100_000, TimeDelta::from_millis(40)), rate);
        assert_eq!(rate.scaled(Ratio::new(277, 100)), Rate::from_bits_per_sec(55_400_000));
    }

    #[test]
    fn extremes_saturate() {
        assert_eq!(Rate::of(1, TimeDelta::ZERO), Rate::ZERO);
        assert_eq!(Rate::of(u64::MAX, TimeDelta::from_nanos(1)), Rate::MAX);
        assert_eq!(Rate::ZERO.time_for(1), TimeDelta::MAX);
        assert_eq!(Rate::from_bytes_per_sec(1).time_for(u64::MAX), TimeDelta::MAX);
        assert_eq!(Rate::MAX.bytes_in(TimeDelta::MAX), u64::MAX);
        assert_eq!(Rate::MAX.scaled(Ratio::new(2, 1)), Rate::MAX);
        assert_eq!(Rate::from_mbit(u64::MAX), Rate::MAX);
        assert_eq!(Rate::MAX.bits_per_sec(), u64::MAX);
    }

    proptest! {
        #[test]
        fn printed_values_parse_back(bytes: u64, shift in 0_u32..64) {
            let rate = Rate(bytes >> shift);
            prop_assert_eq!(rate.to_string().parse(), Ok(rate));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[0-9.]{0,5} ?[kKmMgGtTiIbB/psS%]{0,6}") {
            if let Err(error) = text.parse::<Rate>() {
                prop_assert!(error.to_string().contains("; "));
            }
        }
    }
}
