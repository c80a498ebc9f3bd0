//! Parsing the two common trace formats.

use uncork_units::{Rate, TimeDelta};

use super::Trace;
use crate::LinkSpec;

/// Why a text is not a valid trace, or an unknown trace name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// No built-in trace has this name.
    #[error("unknown trace '{}'; built in: {}", .0, builtin_names())]
    Unknown(String),
    /// Only comments.
    #[error("the trace is empty: write lines of seconds and Mbit/s, or of milliseconds")]
    Empty,
    /// Too many lines with data (this many).
    #[error("the trace has {0} lines of data; the limit is {MAX_LINES}")]
    TooManyLines(usize),
    /// A single rate: its duration is unknown.
    #[error(
        "one line does not say how long its rate lasts: write at least two, or use a constant rate"
    )]
    OneRate,
    /// All opportunities are at 0 ms: the trace has no length.
    #[error("all opportunities are at 0 ms: the last line is the trace's length")]
    NoLength,
    /// An invalid line.
    #[error("line {number}, '{value}': {problem}")]
    Line {
        /// Its number, counted from 1.
        number: usize,
        /// The text.
        value: String,
        /// The problem.
        problem: TraceProblem,
    },
}

/// A problem of a line of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TraceProblem {
    /// The line has neither one column nor two.
    #[error(
        "a line has two columns, seconds and Mbit/s, or one, the millisecond of an opportunity to \
         send: write 0.5 4.2, or 17"
    )]
    Columns,
    /// A different number of columns than earlier lines, which had this many.
    #[error("{}", columns_changed(*.0))]
    Changed(usize),
    /// The time is not a number of seconds.
    #[error("expected a time in seconds, such as 0.5")]
    Seconds,
    /// The rate is not a number of Mbit/s.
    #[error("expected a rate in Mbit/s, such as 4.2, or 0 for an outage")]
    Mbit,
    /// The rate is out of range.
    #[error("the limit is {}", LinkSpec::RATES.1)]
    TooFast,
    /// The time is not a whole number of milliseconds.
    #[error("expected a whole number of milliseconds, such as 17, or seconds and Mbit/s")]
    Millis,
    /// Columns are separated by commas.
    #[error("columns must be separated by spaces, such as 0.5 4.2")]
    Separator,
    /// The time is not later than the previous one.
    #[error("time goes backwards or stands still: sort the lines and leave one for each time")]
    Order,
    /// The time is too long after the first one.
    #[error("a trace may last {MAX_LENGTH} at most: shorten it, or check the unit")]
    TooLong,
}

/// The content of the lines.
#[derive(Debug)]
pub(super) enum NumberedLines {
    /// Rates by start in nanoseconds, beginning at 0, and the total length in nanoseconds.
    Rates { rates: Vec<(u64, Rate)>, length: u64 },
    /// Sorted, in milliseconds; the last one is not 0.
    Opportunities(Vec<u32>),
}

/// Maximum lines with data: opportunities of 20 minutes at 100 Mbit/s.
const MAX_LINES: usize = 10_000_000;

/// Maximum length of a trace.
const MAX_LENGTH: TimeDelta = TimeDelta::from_secs(7 * 86_400);

/// A problem and the part of the line that has it.
type Wrong<'text> = (&'text str, TraceProblem);

pub(super) fn parse(text: &str) -> Result<NumberedLines, TraceError> {
    let data = || {
        let lines = text.lines().map(|line| line.split('#').next().unwrap_or("").trim());
        (1..).zip(lines).filter(|(_, line)| !line.is_empty())
    };
    match data().count() {
        0 => return Err(TraceError::Empty),
        count if count > MAX_LINES => return Err(TraceError::TooManyLines(count)),
        _ => {}
    }
    let first = data().next().map_or(0, |(_, line)| line.split_whitespace().count());
    let at_line = |number: usize| {
        move |(value, problem): Wrong| TraceError::Line { number, value: value.into(), problem }
    };
    if first == 1 {
        let mut times = Vec::new();
        for (number, line) in data() {
            opportunity(&mut times, line).map_err(at_line(number))?;
        }
        return if times.last() == Some(&0) {
            Err(TraceError::NoLength)
        } else {
            Ok(NumberedLines::Opportunities(times))
        };
    }
    let mut rates = Vec::new();
    for (number, line) in data() {
        rate(&mut rates, line).map_err(at_line(number))?;
    }
    with_length(rates)
}

/// Appends the opportunity in `line`.
fn opportunity<'text>(times: &mut Vec<u32>, line: &'text str) -> Result<(), Wrong<'text>> {
    if line.contains(char::is_whitespace) {
        return Err((line, TraceProblem::Changed(1)));
    }
    if line.contains([',', ';']) {
        return Err((line, TraceProblem::Separator));
    }
    let digits = line.bytes().all(|byte| byte.is_ascii_digit());
    let millis: u64 = if digits {
        line.parse().unwrap_or(u64::MAX)
    } else {
        return Err((line, TraceProblem::Millis));
    };
    if TimeDelta::from_millis(millis) > MAX_LENGTH {
        return Err((line, TraceProblem::TooLong));
    }
    let millis = millis as u32;
    if times.last().is_some_and(|last| *last > millis) {
        return Err((line, TraceProblem::Order));
    }
    times.push(millis);
    Ok(())
}

/// Appends the rate in `line`, with its original time in seconds.
fn rate<'text>(rates: &mut Vec<(f64, Rate)>, line: &'text str) -> Result<(), Wrong<'text>> {
    let mut columns = line.split_whitespace();
    let (Some(seconds), Some(mbit), None) = (columns.next(), columns.next(), columns.next()) else {
        let known = if rates.is_empty() { TraceProblem::Columns } else { TraceProblem::Changed(2) };
        return Err((line, known));
    };
    let at = number(seconds).ok_or((seconds, TraceProblem::Seconds))?;
    let rate = number(mbit).ok_or((mbit, TraceProblem::Mbit))?;
    let rate = Rate::from_bytes_per_sec((rate * 125_000.0).round() as u64);
    if rate > LinkSpec::RATES.1 {
        return Err((mbit, TraceProblem::TooFast));
    }
    let first = rates.first().map_or(at, |first| first.0);
    let before = rates.last().map(|last| nanos(last.0 - first));
    if before.is_some_and(|before| nanos(at - first) <= before) {
        return Err((seconds, TraceProblem::Order));
    }
    if nanos(at - first) > MAX_LENGTH.as_nanos() {
        return Err((seconds, TraceProblem::TooLong));
    }
    rates.push((at, rate));
    Ok(())
}

/// A non-negative number.
fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0)
}

fn nanos(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

/// The last rate lasts for the median of the earlier spans.
fn with_length(rates: Vec<(f64, Rate)>) -> Result<NumberedLines, TraceError> {
    let first = rates.first().map_or(0.0, |first| first.0);
    let rates: Vec<(u64, Rate)> =
        rates.into_iter().map(|(at, rate)| (nanos(at - first), rate)).collect();
    let mut spans: Vec<u64> = rates.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    spans.sort_unstable();
    let median = spans.get(spans.len() / 2).ok_or(TraceError::OneRate)?;
    let length = rates.last().map_or(0, |last| last.0) + median;
    Ok(NumberedLines::Rates { rates, length })
}

fn builtin_names() -> String {
    let [names @ .., last] = Trace::BUILTIN;
    format!("{} and {last}", names.join(", "))
}

const fn columns_changed(before: usize) -> &'static str {
    match before {
        1 => "the lines before have one column: write milliseconds",
        _ => "the lines before have two columns: write seconds and Mbit/s",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use uncork_testkit::assert_message;

    fn rates(text: &str) -> (Vec<(u64, u64)>, u64) {
        match parse(text).expect("a trace") {
            NumberedLines::Rates { rates, length } => {
                (rates.into_iter().map(|(at, rate)| (at, rate.bits_per_sec())).collect(), length)
            }
            NumberedLines::Opportunities(times) => panic!("{times:?}"),
        }
    }

    fn error(text: &str) -> String {
        parse(text).expect_err("no trace").to_string()
    }

    #[test]
    fn two_columns_are_rates() {
        let text =
            "# seconds, Mbit/s\r\n1436.72\t0.4\r\n\r\n1437.74 0 # tunnel\r\n  1438.75   12.5e0";
        let (rates, length) = rates(text);
        assert_eq!(rates, [(0, 400_000), (1_020_000_000, 0), (2_030_000_000, 12_500_000)]);
        assert_eq!(length, 3_050_000_000);
    }

    /// Spans of 1, 1 and 60 s: the gap does not extend the last rate.
    #[test]
    fn last_rate_lasts_for_the_median_span() {
        assert_eq!(rates("0 1\n1 1\n2 1\n62 1").1, 63_000_000_000);
    }

    #[test]
    fn one_column_is_opportunities() {
        let Ok(NumberedLines::Opportunities(times)) = parse("0\n0 # two\r\n\n 17\n17\n") else {
            panic!("they are");
        };
        assert_eq!(times, [0, 0, 17, 17]);
    }

    #[test]
    fn errors_name_the_line_the_value_and_the_correct_form() {
        for (text, line, value) in [
            ("0 1\nx 2", 2, "x"),
            ("0 1\n\n1 fast", 3, "fast"),
            ("0 -1", 1, "-1"),
            ("0 nan", 1, "nan"),
            ("0 inf", 1, "inf"),
            ("-1 1", 1, "-1"),
            ("0 1\n0 2", 2, "0"),
            ("5 1\n4 2", 2, "4"),
            ("0 400001", 1, "400001"),
            ("0 1\n604801 1", 2, "604801"),
            ("0 1 2", 1, "0 1 2"),
            ("0,1", 1, "0,1"),
            ("0 1\n7", 2, "7"),
            ("3\n4 1", 2, "4 1"),
            ("3.5", 1, "3.5"),
            ("+3", 1, "+3"),
            ("3\n2", 2, "2"),
            ("99999999999999999999", 1, "99999999999999999999"),
        ] {
            let error = error(text);
            assert!(error.starts_with(&format!("line {line}, '{value}': ")), "{text:?}: {error}");
            assert_message!(text, error);
        }
        for text in [" \n# nothing\n", "5 1", "0\n0\n"] {
            assert_message!(text, error(text));
        }
    }

    #[test]
    fn overlong_text_is_rejected() {
        assert_message!("lines", error(&"1\n".repeat(MAX_LINES + 1)));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "([0-9.#e\\- \t\r\nx]{0,4}\n?){0,20}") {
            match parse(&text) {
                Ok(NumberedLines::Rates { rates, length }) => {
                    prop_assert!(rates.is_sorted_by(|one, other| one.0 < other.0));
                    prop_assert!(rates.len() > 1 && rates[0].0 == 0);
                    prop_assert!(rates.last().is_some_and(|last| last.0 < length));
                }
                Ok(NumberedLines::Opportunities(times)) => {
                    prop_assert!(times.is_sorted() && times.last() > Some(&0));
                }
                Err(error) => prop_assert!(error.to_string().contains(": "), "{error}"),
            }
        }
    }
}
