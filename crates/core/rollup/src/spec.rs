//! What a roll-up is asked for.

use std::fmt;
use std::str::FromStr;

/// Rows of single clients, and of single AS, that a roll-up holds by default.
pub const DEFAULT_MAX_ROWS: usize = 100_000;

const HALF_HOUR_S: u32 = 1_800;
const HOUR_S: u32 = 3_600;
const DAY_S: u32 = 24 * HOUR_S;
const NS: u64 = 1_000_000_000;

/// The length of a roll-up's periods: a divisor of 30 minutes, so that hours, days and half hours are sums of periods. Mergers
/// also have hours and days.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Period(u32);

impl Period {
    /// Five minutes.
    pub const DEFAULT: Self = Self(300);

    /// A day, of merged files alone.
    pub const DAY: Self = Self(DAY_S);

    /// A period of whole seconds, of a host or of a merged file. `None` if it is neither an hour nor a day, and 30 minutes are
    /// not a multiple of it, or it is shorter than 10 s.
    pub fn from_secs(seconds: u32) -> Option<Self> {
        let is_part = seconds >= 10 && HALF_HOUR_S.is_multiple_of(seconds);
        (is_part || [HOUR_S, DAY_S].contains(&seconds)).then_some(Self(seconds))
    }

    /// A period of a merged file: one of a host, `1h` or `1d`.
    ///
    /// # Errors
    ///
    /// Of another text.
    pub fn of_merged(text: &str) -> Result<Self, String> {
        match text {
            "1h" => Ok(Self(HOUR_S)),
            "1d" => Ok(Self::DAY),
            _ => text
                .parse()
                .map_err(|_| "expected 1d, 1h or a divisor of 30min, such as 5min".to_owned()),
        }
    }

    /// Its length.
    pub const fn as_secs(self) -> u32 {
        self.0
    }

    /// The beginning of the period of a time since 1970.
    pub const fn start(self, unix_ns: u64) -> u64 {
        unix_ns - unix_ns % (self.0 as u64 * NS)
    }

    /// The beginning of the next period.
    pub const fn next(self, unix_ns: u64) -> u64 {
        self.start(unix_ns).saturating_add(self.0 as u64 * NS)
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            DAY_S => f.write_str("1d"),
            HOUR_S => f.write_str("1h"),
            seconds if seconds.is_multiple_of(60) => write!(f, "{}min", seconds / 60),
            seconds => write!(f, "{seconds}s"),
        }
    }
}

impl FromStr for Period {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = match text.strip_suffix("min").or_else(|| text.strip_suffix('m')) {
            Some(minutes) => minutes.parse().ok().and_then(|number: u32| number.checked_mul(60)),
            None => text.strip_suffix('s').and_then(|seconds| seconds.parse().ok()),
        };
        let period = parsed.filter(|seconds| *seconds <= HALF_HOUR_S).and_then(Self::from_secs);
        period.ok_or_else(|| "expected a divisor of 30min from 10s, such as 5min".to_owned())
    }
}

/// What a roll-up is asked for. Roll-ups of one specification merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RollupSpec {
    /// The name of the host.
    pub host: String,
    /// The length of the periods.
    pub period: Period,
    /// The maximum number of rows of single clients, and again of single AS.
    pub max_rows: usize,
}

impl RollupSpec {
    /// Periods of five minutes, and at most [`DEFAULT_MAX_ROWS`] rows.
    pub fn new(host: impl Into<String>) -> Self {
        Self { host: host.into(), period: Period::DEFAULT, max_rows: DEFAULT_MAX_ROWS }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_is_a_divisor_of_half_an_hour() {
        for (text, seconds) in [("5min", 300), ("5m", 300), ("30min", 1800), ("10s", 10)] {
            assert_eq!(text.parse::<Period>().map(Period::as_secs), Ok(seconds), "{text}");
        }
        for text in ["7min", "1s", "1h", "60min", "1d", "0s", "", "5", "-5min", "99999999999min"] {
            assert!(text.parse::<Period>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_period_of_a_merged_file_may_be_an_hour_or_a_day() {
        for (text, seconds) in [("5min", 300), ("1h", 3_600), ("1d", 86_400)] {
            let period = Period::of_merged(text).expect("a period");
            assert_eq!((period.as_secs(), period.to_string()), (seconds, text.to_owned()));
            assert_eq!(Period::from_secs(seconds), Some(period));
        }
        assert!(Period::of_merged("2h").is_err() && Period::from_secs(7_200).is_none());
    }

    #[test]
    fn a_period_begins_at_a_multiple_of_its_length() {
        let period = Period::DEFAULT;
        assert_eq!(period.start(301 * NS), 300 * NS);
        assert_eq!(period.next(300 * NS), 600 * NS);
    }
}
