//! Timestamps in file names. Their alphabetical order is their order in time.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

const DAY: u64 = 86_400;

/// A time in a file's name: `20261121T214500.123Z`.
pub fn stamp(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, second) = (since.as_secs() / DAY, since.as_secs() % DAY);
    let (year, month, day) = date(days);
    format!(
        "{year:04}{month:02}{day:02}T{:02}{:02}{:02}.{:03}Z",
        second / 3600,
        second / 60 % 60,
        second % 60,
        since.subsec_millis()
    )
}

/// The time of [`stamp`] in whole seconds since 1970; `None` of another text.
pub(crate) fn unix_s_of(text: &str) -> Option<u64> {
    let number = |from: usize, to: usize| -> Option<u64> {
        let digits =
            text.get(from..to).filter(|it| it.bytes().all(|byte| byte.is_ascii_digit()))?;
        digits.parse().ok()
    };
    let (year, month, day) = (number(0, 4)?, number(4, 6)?, number(6, 8)?);
    let of_day = number(9, 11)? * 3600 + number(11, 13)? * 60 + number(13, 15)?;
    // Years begin with March, as in `date`.
    let (of_year, of_month) =
        if month > 2 { (year, month - 3) } else { (year.checked_sub(1)?, month + 9) };
    let days = 365 * of_year + of_year / 4 - of_year / 100 + of_year / 400;
    let days = days + (153 * of_month + 2) / 5 + day.checked_sub(1)?;
    let unix_s = days.checked_sub(719_468)? * DAY + of_day;
    // Times that do not exist, and other texts, do not come back.
    (stamp(UNIX_EPOCH + Duration::from_secs(unix_s))[..15] == text[..15]).then_some(unix_s)
}

/// A time in a file's text: `2026-11-21T21:45:00Z` (RFC 3339).
pub fn rfc3339(unix_s: u64) -> String {
    let ((year, month, day), second) = (date(unix_s / DAY), unix_s % DAY);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The date in the Gregorian calendar, `days` after 1 January 1970. Years begin with March here, so
/// that a leap day is the last day of a year.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468; // Days since 1 March of the year 0.
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + next, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected values are from `date -u -d @SECONDS`.
    #[test]
    fn timestamps_match_date() {
        for (milliseconds, written) in [
            (0, "19700101T000000.000Z"),
            (951_782_399_999, "20000228T235959.999Z"),
            (951_782_400_000, "20000229T000000.000Z"),
            (1_709_251_200_007, "20240301T000000.007Z"),
            (1_795_297_500_123, "20261121T214500.123Z"),
            (4_107_542_399_000, "21000228T235959.000Z"),
            (4_107_542_400_000, "21000301T000000.000Z"),
        ] {
            assert_eq!(stamp(UNIX_EPOCH + Duration::from_millis(milliseconds)), written);
            assert_eq!(unix_s_of(written), Some(milliseconds / 1_000));
        }
        for other in ["20260230T000000.000Z", "20261201T250000.000Z", "20261201", "é", ""] {
            assert_eq!(unix_s_of(other), None, "{other}");
        }
    }

    #[test]
    fn time_is_written_as_in_rfc_3339() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00Z");
        assert_eq!(rfc3339(1_709_251_199), "2024-02-29T23:59:59Z");
    }
}
