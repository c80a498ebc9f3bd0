//! Points in time and spans between them, in integer nanoseconds.

use core::fmt;
use core::ops::{Add, AddAssign, Sub};
use core::str::FromStr;
use core::time::Duration;

use crate::ParseError;
use crate::decimal::write_shortest;
use crate::error::Grammar;
use crate::quantity::{QuantityUnit, parse};
use crate::wide::saturating_mul;

/// A point in time: nanoseconds since an epoch that the host chooses, such as the start of a process
/// or of a simulation. 64 bits last 584 years.
///
/// ```
/// use std::time::Instant;
/// use uncork_units::Time;
///
/// let epoch = Instant::now(); // one epoch for each process
/// let now = Time::from_elapsed(epoch.elapsed());
/// # assert!(now < Time::NEVER);
/// ```
///
/// A controller needs steps of at most a quarter of the shortest RTT, or that the host declares longer ones
/// (`uncork_cc::Settings::with_clock_granularity`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

/// A span of time in nanoseconds, never negative. Written `25ms`, `1.5s`, `200us`, `2min`, `24h`, `10d`. Converts
/// from and to [`Duration`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeDelta(u64);

const GRAMMAR: Grammar = Grammar {
    name: "duration",
    examples: "25ms, 1.5s, 200us, 2min, 24h or 10d",
    units: &["ms", "s", "us"],
    smallest: "1ns",
    largest: "18446744073s",
};

impl Time {
    /// The epoch.
    pub const ZERO: Self = Self(0);
    /// The maximum, used as "never".
    pub const NEVER: Self = Self(u64::MAX);

    /// The point `nanos` nanoseconds after the epoch.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The point `elapsed` after the epoch. A duration above 584 years gives [`Self::NEVER`].
    pub const fn from_elapsed(elapsed: Duration) -> Self {
        Self(saturating_nanos(elapsed))
    }

    /// Nanoseconds since the epoch.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the epoch, for reports and plots.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The span since `earlier`; zero when `earlier` is later.
    pub const fn since(self, earlier: Self) -> TimeDelta {
        TimeDelta(self.0.saturating_sub(earlier.0))
    }
}

impl TimeDelta {
    /// The empty span.
    pub const ZERO: Self = Self(0);
    /// The maximum, used as "infinite".
    pub const MAX: Self = Self(u64::MAX);

    /// A span of `nanos` nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// A span of `micros` microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Self(saturating_mul(micros, 1_000))
    }

    /// A span of `millis` milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(saturating_mul(millis, 1_000_000))
    }

    /// A span of `secs` seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Self(saturating_mul(secs, 1_000_000_000))
    }

    /// The span in nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The span in whole microseconds, rounded down.
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// The span in milliseconds, for reports and plots.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The span in seconds, for reports and plots.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Whether the span is empty.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// This span `n` times.
    #[must_use]
    pub const fn times(self, n: u64) -> Self {
        Self(saturating_mul(self.0, n))
    }

    /// This span divided by `n`, rounded down; `n` = 0 counts as 1.
    #[must_use]
    pub const fn divided_by(self, n: u64) -> Self {
        Self(self.0 / if n == 0 { 1 } else { n })
    }
}

const fn saturating_nanos(duration: Duration) -> u64 {
    let whole = saturating_mul(duration.as_secs(), 1_000_000_000);
    whole.saturating_add(duration.subsec_nanos() as u64)
}

impl From<Duration> for TimeDelta {
    /// The same span. A duration above 584 years gives [`TimeDelta::MAX`].
    fn from(duration: Duration) -> Self {
        Self(saturating_nanos(duration))
    }
}

impl From<TimeDelta> for Duration {
    fn from(span: TimeDelta) -> Self {
        Self::from_nanos(span.0)
    }
}

impl Add<TimeDelta> for Time {
    type Output = Self;
    fn add(self, span: TimeDelta) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl AddAssign<TimeDelta> for Time {
    fn add_assign(&mut self, span: TimeDelta) {
        *self = *self + span;
    }
}

impl Add for TimeDelta {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for TimeDelta {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for TimeDelta {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

fn unit(name: &str) -> QuantityUnit {
    let named = [
        ("ns", 1),
        ("us", 1_000),
        ("\u{b5}s", 1_000),
        ("\u{3bc}s", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("min", 60_000_000_000),
        ("h", 3_600_000_000_000),
        ("d", 86_400_000_000_000),
    ];
    if name.eq_ignore_ascii_case("m") {
        return QuantityUnit::Ambiguous(["ms", "min"]);
    }
    let found = named.iter().find(|(known, _)| name.eq_ignore_ascii_case(known));
    found.map_or(QuantityUnit::Unknown, |(_, nanos)| QuantityUnit::of(*nanos))
}

impl FromStr for TimeDelta {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        parse(text, &GRAMMAR, unit).map(Self)
    }
}

#[expect(clippy::disallowed_types, reason = "only hosts write text")]
impl fmt::Display for TimeDelta {
    /// The shortest form that parses back to the same value.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u128, &str); 4] =
            [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")];
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
        text.parse::<TimeDelta>().unwrap_err().to_string()
    }

    #[test]
    fn reads_spans() {
        for (text, nanos) in [
            ("25ms", 25_000_000),
            ("25 MS", 25_000_000),
            ("1.5s", 1_500_000_000),
            ("200us", 200_000),
            ("200\u{b5}s", 200_000),
            ("200\u{3bc}s", 200_000),
            ("2min", 120_000_000_000),
            ("24h", 86_400_000_000_000),
            ("0.5d", 43_200_000_000_000),
            ("7ns", 7),
            ("1.9ns", 1),
            ("0s", 0),
        ] {
            assert_eq!(text.parse(), Ok(TimeDelta(nanos)), "{text}");
        }
    }

    #[test]
    fn errors_suggest_the_correct_form() {
        for text in ["25", "10m", "1w", "-1s", "0.1ns", "18446744074s"] {
            assert_message!(text, error(text));
        }
    }

    #[test]
    fn prints_the_shortest_form() {
        for (nanos, text) in [
            (0, "0ns"),
            (25_000_000, "25ms"),
            (100_000_000, "100ms"),
            (1_500_000_000, "1.5s"),
            (200_000, "200us"),
            (12_500_000, "12.5ms"),
            (120_000_000_000, "120s"),
        ] {
            assert_eq!(TimeDelta(nanos).to_string(), text);
        }
    }

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Time::NEVER + TimeDelta::from_secs(1), Time::NEVER);
        assert_eq!(Time(5).since(Time(3)), TimeDelta(2));
        assert_eq!(Time(3).since(Time(5)), TimeDelta::ZERO);
        assert_eq!(TimeDelta::MAX + TimeDelta(1), TimeDelta::MAX);
        assert_eq!(TimeDelta(1) - TimeDelta(2), TimeDelta::ZERO);
        assert_eq!(TimeDelta::MAX.times(2), TimeDelta::MAX);
        assert_eq!(TimeDelta(7).divided_by(2), TimeDelta(3));
        assert_eq!(TimeDelta(7).divided_by(0), TimeDelta(7));
        assert_eq!(TimeDelta::from_secs(u64::MAX), TimeDelta::MAX);
    }

    #[test]
    fn assigning_sums_are_sums() {
        let mut time = Time::ZERO;
        let mut span = TimeDelta::from_millis(1);
        span += TimeDelta::from_micros(500);
        time += span;
        assert_eq!(time.as_nanos(), 1_500_000);
        assert_eq!(span.as_micros(), 1_500);
    }

    #[test]
    fn durations_beyond_64_bits_of_nanoseconds_saturate() {
        assert_eq!(TimeDelta::from(Duration::MAX), TimeDelta::MAX);
        assert_eq!(Time::from_elapsed(Duration::MAX), Time::NEVER);
        assert_eq!(Time::from_elapsed(Duration::from_millis(3)), Time(3_000_000));
    }

    proptest! {
        #[test]
        fn a_duration_converts_back_to_the_same_span(nanos: u64) {
            let span = TimeDelta(nanos);
            prop_assert_eq!(TimeDelta::from(Duration::from(span)), span);
        }

        #[test]
        fn printed_values_parse_back(nanos: u64, shift in 0_u32..64) {
            let span = TimeDelta(nanos >> shift);
            prop_assert_eq!(span.to_string().parse(), Ok(span));
        }
    }
}
