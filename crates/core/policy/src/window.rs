//! Time windows.

use std::str::FromStr;

use thiserror::Error;
use toml_edit::{Datetime, Offset};

/// Unix time in seconds. Written `2026-12-01T18:00:00Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnixTime(pub i64);

/// Why a text is not a [`UnixTime`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TimeError {
    /// It is not a date with a time.
    #[error("not a date with a time: write 2026-12-01T18:00:00Z, or +01:00 for Z")]
    Unreadable,
    /// It has no UTC offset.
    #[error("missing UTC offset: write 2026-12-01T18:00:00Z, or +01:00 for Z")]
    NoOffset,
}

pub(crate) const DAY: i64 = 86_400;

/// The days of the week, starting on Monday.
pub(crate) const WEEKDAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// A time window: a span, days of the week and hours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeWindow {
    /// Start of the span, inclusive.
    pub(crate) since: Option<UnixTime>,
    /// End of the span, exclusive.
    pub(crate) until: Option<UnixTime>,
    /// Start (inclusive) and end (exclusive) in seconds after midnight; the end may be on the next day.
    pub(crate) hours: Option<(i64, i64)>,
    /// Bit mask of the [`WEEKDAYS`] on which the hours start.
    pub(crate) days: u8,
    /// The UTC offset of local time in seconds.
    pub(crate) ahead: i64,
}

impl TimeWindow {
    /// Whether `time` is in the window.
    pub(crate) fn contains(&self, time: UnixTime) -> bool {
        self.since.is_none_or(|since| since <= time)
            && self.until.is_none_or(|until| time < until)
            && self.in_hours(time)
    }

    fn in_hours(&self, time: UnixTime) -> bool {
        let local = time.0.saturating_add(self.ahead);
        let (day, second) = (local.div_euclid(DAY), local.rem_euclid(DAY));
        match self.hours {
            None => self.on(day),
            Some((from, to)) if from < to => (from..to).contains(&second) && self.on(day),
            Some((from, _)) if second >= from => self.on(day),
            Some((_, to)) => second < to && self.on(day - 1),
        }
    }

    /// Whether the window includes this day, counted from 1970, which began on a Thursday.
    fn on(&self, day: i64) -> bool {
        self.days >> (day + 3).rem_euclid(7) & 1 == 1
    }
}

impl FromStr for UnixTime {
    type Err = TimeError;

    fn from_str(text: &str) -> Result<Self, TimeError> {
        let read: Datetime = text.parse().map_err(|_| TimeError::Unreadable)?;
        let (Some(date), Some(time)) = (read.date, read.time) else {
            return Err(TimeError::Unreadable);
        };
        let ahead = match read.offset.ok_or(TimeError::NoOffset)? {
            Offset::Z => 0,
            Offset::Custom { minutes } => i64::from(minutes) * 60,
        };
        let minute = i64::from(time.hour) * 60 + i64::from(time.minute);
        let second = minute * 60 + i64::from(time.second.unwrap_or(0));
        let day = days_since_1970(date.year, date.month, date.day);
        Ok(Self(day * DAY + second - ahead))
    }
}

/// Days from 1970 to a Gregorian date: full years, then the days of the year.
pub(crate) fn days_since_1970(year: u16, month: u8, day: u8) -> i64 {
    let before = i64::from(year) - 1;
    let leap_days = |years: i64| years / 4 - years / 100 + years / 400;
    let is_leap = leap_days(before + 1) > leap_days(before);
    let begins = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    let month = usize::from(month.clamp(1, 12)) - 1;
    let in_year = begins[month] + i64::from(is_leap && month > 1) + i64::from(day) - 1;
    (before - 1969) * 365 + leap_days(before) - leap_days(1969) + in_year
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALWAYS: TimeWindow =
        TimeWindow { since: None, until: None, hours: None, days: 0x7f, ahead: 0 };

    fn at(day: i64, hour: i64) -> UnixTime {
        UnixTime(day * DAY + hour * 3600)
    }

    /// Reference values from `date -u -d … +%s`, divided by 86400.
    #[test]
    fn dates_match_the_calendar() {
        for (year, month, day, days) in [
            (1970, 1, 1, 0),
            (1970, 3, 1, 59),
            (1972, 3, 1, 790),
            (2000, 2, 29, 11_016),
            (2000, 12, 31, 11_322),
            (2026, 11, 21, 20_778),
            (2100, 3, 1, 47_541),
            (1969, 12, 31, -1),
            (1900, 1, 1, -25_567),
        ] {
            assert_eq!(days_since_1970(year, month, day), days, "{year}-{month}-{day}");
        }
    }

    #[test]
    fn times_are_read_with_their_offsets() {
        for (text, seconds) in [
            ("1970-01-01T00:00:00Z", 0),
            ("1970-01-01T01:00:30+01:00", 30),
            ("1969-12-31T19:00:00-05:00", 0),
            ("2026-11-21 12:00:00.5Z", 20_778 * DAY + DAY / 2),
        ] {
            assert_eq!(text.parse(), Ok(UnixTime(seconds)), "{text}");
        }
        for text in ["", "1970-01-01", "12:00:00", "1970-02-30T00:00:00Z", "now"] {
            assert_eq!(text.parse::<UnixTime>(), Err(TimeError::Unreadable), "{text}");
        }
        assert_eq!("1970-01-01T00:00:00".parse::<UnixTime>(), Err(TimeError::NoOffset));
    }

    #[test]
    fn hours_past_midnight_belong_to_the_day_they_start_on() {
        // 1970-01-02 was a Friday.
        let friday = 1 << 4;
        let night = TimeWindow { hours: Some((22 * 3600, 4 * 3600)), days: friday, ..ALWAYS };
        assert!(night.contains(at(1, 22)) && night.contains(at(2, 3)));
        assert!(!night.contains(at(1, 21)) && !night.contains(at(2, 4)));
        assert!(!night.contains(at(1, 3)), "this belongs to Thursday");
        assert!(!night.contains(at(2, 22)));
        let day = TimeWindow { hours: Some((9 * 3600, 17 * 3600)), ..night };
        assert!(day.contains(at(1, 9)) && !day.contains(at(1, 17)) && !day.contains(at(0, 9)));
    }

    #[test]
    fn local_time_is_ahead_or_behind() {
        let evening = TimeWindow { hours: Some((18 * 3600, DAY)), ..ALWAYS };
        assert!(evening.contains(at(0, 18)) && evening.contains(UnixTime(DAY - 1)));
        let lima = TimeWindow { ahead: -5 * 3600, ..evening };
        assert!(!lima.contains(at(0, 18)) && lima.contains(at(0, 23)) && lima.contains(at(1, 4)));
    }

    #[test]
    fn span_includes_its_start_and_excludes_its_end() {
        let span = TimeWindow { since: Some(at(10, 0)), until: Some(at(11, 0)), ..ALWAYS };
        assert!(span.contains(at(10, 0)) && span.contains(UnixTime(11 * DAY - 1)));
        assert!(!span.contains(at(11, 0)) && !span.contains(UnixTime(10 * DAY - 1)));
    }

    #[test]
    fn extreme_times_do_not_overflow() {
        let night = TimeWindow { hours: Some((22 * 3600, 4 * 3600)), ahead: -DAY, ..ALWAYS };
        for time in [i64::MIN, i64::MAX] {
            let _ = night.contains(UnixTime(time));
        }
    }
}
