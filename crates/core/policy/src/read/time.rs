//! Parsing of time windows.

use uncork_config::{ConfigError, Node, Place, Result, Section, Value, wrong_type};

use super::{keys, members};
use crate::window::{DAY, TimeWindow, WEEKDAYS};
use crate::{TimeError, UnixTime};

/// Parses `time = { … }`; `place` is that of the key.
pub(crate) fn window(place: &Place, node: &Node) -> Result<TimeWindow> {
    let section = Section::new("`time`", place, node, keys::TIME)?;
    if node.entries().is_empty() {
        return Err(ConfigError::new(place, "an empty time window always matches")
            .help("write time = { from = \"18:00\", to = \"23:00\" }"));
    }
    let since = section.read("since", instant)?;
    let until = section.read("until", instant)?;
    if since.is_some() && until.is_some_and(|until| since >= Some(until)) {
        return Err(ConfigError::new(section.value_place("until"), "`until` is not after `since`")
            .help("use a time after `since`"));
    }
    Ok(TimeWindow {
        since,
        until,
        hours: hours(&section)?,
        days: section.read("days", days)?.unwrap_or(0x7f),
        ahead: section.read("utc_offset", offset)?.unwrap_or(0),
    })
}

/// A date and time with UTC offset, as a string or a TOML date.
fn instant(node: &Node) -> Result<UnixTime> {
    let (Value::Text(text) | Value::Date(text)) = &node.value else {
        return Err(wrong_type(node, "a date with time").help("write 2026-12-01T18:00:00Z"));
    };
    text.parse().map_err(|error: TimeError| ConfigError::worded(&node.place, error))
}

fn hours(section: &Section<'_>) -> Result<Option<(i64, i64)>> {
    let (from, to) = match (section.get("from"), section.get("to")) {
        (None, None) => return Ok(None),
        (Some(from), Some(to)) => (from, to),
        (Some(_), None) => return Err(alone(section, "from", "to")),
        (None, Some(_)) => return Err(alone(section, "to", "from")),
    };
    let (begin, end) = (clock(from)?, clock(to)?);
    if begin == end || begin == DAY {
        return Err(ConfigError::new(&to.place, "`from` equals `to`: the window is empty")
            .help("leave `from` and `to` out for whole days"));
    }
    Ok(Some((begin, end)))
}

fn alone(section: &Section<'_>, key: &str, other: &str) -> ConfigError {
    ConfigError::new(section.key_place(key), format!("`{key}` needs `{other}`"))
        .help(format!("write {other} = \"23:00\" next to it"))
}

/// A time of day in seconds after midnight; `24:00` is the end of the day.
fn clock(node: &Node) -> Result<i64> {
    let text = match &node.value {
        Value::Text(text) | Value::Date(text) => text.as_str(),
        _ => return Err(wrong_type(node, "a time of the day").help("write \"18:00\"")),
    };
    let seconds =
        minutes(text.strip_suffix(":00").filter(|rest| rest.contains(':')).unwrap_or(text))
            .map(|minutes| minutes * 60)
            .filter(|seconds| *seconds <= DAY);
    seconds.ok_or_else(|| {
        ConfigError::new(&node.place, format!("`{text}` is not a time of day"))
            .help("write \"18:00\", from \"00:00\" to \"24:00\"")
    })
}

/// `HH:MM` in minutes.
fn minutes(text: &str) -> Option<i64> {
    let (hours, minutes) = text.split_once(':')?;
    let two = |digits: &str| {
        let plain = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
        digits.parse::<i64>().ok().filter(|_| plain)
    };
    let minutes = two(minutes).filter(|minutes| *minutes < 60)?;
    Some(two(hours)? * 60 + minutes)
}

fn days(node: &Node) -> Result<u8> {
    let mut days = 0;
    for member in members(node)? {
        let text = member.text()?;
        let day = WEEKDAYS.iter().position(|day| *day == text).ok_or_else(|| {
            ConfigError::new(&member.place, format!("`{text}` is not a day of the week"))
                .expected(format!("one of {}", WEEKDAYS.join(", ")))
                .nearest(text, WEEKDAYS)
        })?;
        days |= 1 << day;
    }
    Ok(days)
}

/// A UTC offset such as `+02:00`, in seconds.
fn offset(node: &Node) -> Result<i64> {
    let text = node.text()?;
    let sign = match text.as_bytes().first() {
        Some(b'+') => Some(1),
        Some(b'-') => Some(-1),
        _ => None,
    };
    let offset = sign.and_then(|sign| Some(sign * minutes(text.get(1..)?)? * 60));
    offset.filter(|offset| offset.abs() < DAY).ok_or_else(|| {
        ConfigError::new(&node.place, format!("`{text}` is not a UTC offset"))
            .help("write \"+02:00\" or \"-05:00\"")
    })
}
