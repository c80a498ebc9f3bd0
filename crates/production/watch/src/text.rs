//! Formats rows as lines of text.

use uncork_units::TimeDelta;

use crate::row::{GroupBy, Row};
use crate::tracker::Tracker;

/// Headings of the columns after the name.
const HEADINGS: [&str; 9] = [
    "Mbit/s",
    "rtt ms",
    "min ms",
    "cwnd kB",
    "flight kB",
    "resent %",
    "limited by",
    "time %",
    "BBR",
];
/// Their widths. Text is left-aligned, numbers are right-aligned.
const WIDTHS: [usize; 9] = [9, 8, 8, 9, 9, 8, 11, 6, 14];
const TEXTS: [bool; 9] = [false, false, false, false, false, false, true, false, true];
/// Width of the column after the name: a controller, or a number of connections.
const SECOND: usize = 11;
const NAME: usize = 24;

/// A summary of a pass in one line.
pub(crate) fn summary(tracker: &Tracker, rows: &[Row]) -> String {
    let sum = |of: fn(&Row) -> u64| rows.iter().map(of).fold(0, u64::saturating_add);
    let (sent, resent) = (sum(|row| row.sent), sum(|row| row.resent));
    let share = if sent == 0 { 0.0 } else { resent as f64 / sent as f64 * 100.0 };
    let lost = match tracker.lost_close_events() {
        0 => String::new(),
        times => format!("; close events lost {times} times"),
    };
    format!(
        "{:.1} s: {} connections, {} active, {} ended; {:.2} Mbit/s acknowledged, {share:.2} % resent{lost}",
        tracker.at().session_ns as f64 / 1e9,
        sum(|row| row.connections.into()),
        sum(|row| row.active.into()),
        tracker.ended_connections(),
        sum(|row| row.rate.bits_per_sec()) as f64 / 1e6,
    )
}

/// A heading, and one line per row.
pub(crate) fn table(rows: &[Row], by: GroupBy) -> Vec<String> {
    let names: Vec<String> = rows.iter().map(|row| row.name.to_string()).collect();
    let width = names.iter().map(String::len).max().unwrap_or(0).max(NAME);
    let headings = HEADINGS.map(str::to_owned);
    let mut lines = vec![line(by.name(), width, second_heading(by), &headings)];
    let rows = rows.iter().zip(&names);
    lines.extend(rows.map(|(row, name)| line(name, width, &second(row, by), &cells(row))));
    lines
}

/// The columns after the name by what they decide, most first: [`HEADINGS`] from 0, and the column after the name.
const DECIDING: [Option<usize>; 10] =
    [Some(6), Some(7), Some(5), Some(0), Some(8), Some(1), None, Some(2), Some(3), Some(4)];
/// Width of a name where the columns must fit.
const SHORT_NAME: usize = 21;

/// The table, without the columns that do not fit into `width` characters.
pub(crate) fn fitted(rows: &[Row], by: GroupBy, width: usize) -> Vec<String> {
    let whole = table(rows, by);
    if whole.iter().all(|line| line.chars().count() <= width) {
        return whole;
    }
    let headings = HEADINGS.map(str::to_owned);
    let mut lines: Vec<(String, String, [String; 9])> =
        vec![(by.short_name().to_owned(), second_heading(by).to_owned(), headings)];
    lines.extend(rows.iter().map(|row| (row.name.short(), second(row, by), cells(row))));
    let cell = |(_, second, cells): &(String, String, [String; 9]), column: Option<usize>| {
        column.map_or_else(|| second.clone(), |index| cells[index].clone())
    };
    let name = lines.iter().map(|line| line.0.chars().count()).max().unwrap_or(0).min(SHORT_NAME);
    let (mut chosen, mut used) = (Vec::new(), name);
    for column in DECIDING {
        let longest = lines.iter().map(|line| cell(line, column).len()).max().unwrap_or(0);
        if used + 1 + longest <= width {
            used += 1 + longest;
            chosen.push((column, longest));
        }
    }
    // In the order of the whole table: `None` is the column after the name.
    chosen.sort_unstable();
    let print = |line: &(String, String, [String; 9])| {
        let mut text = format!("{:<name$}", line.0.chars().take(name).collect::<String>());
        for (column, width) in &chosen {
            let cell = cell(line, *column);
            let is_text = column.is_none_or(|index| TEXTS[index]);
            let cell =
                if is_text { format!(" {cell:<width$}") } else { format!(" {cell:>width$}") };
            text.push_str(&cell);
        }
        text.trim_end().to_owned()
    };
    lines.iter().map(print).collect()
}

const fn second_heading(by: GroupBy) -> &'static str {
    if matches!(by, GroupBy::Socket) { "controller" } else { "connections" }
}

fn second(row: &Row, by: GroupBy) -> String {
    match by {
        GroupBy::Socket => row.cc.map_or_else(|| "unknown".to_owned(), |cc| cc.to_string()),
        _ => row.connections.to_string(),
    }
}

fn cells(row: &Row) -> [String; 9] {
    let millis = |time: Option<TimeDelta>| time.map(|time| format!("{:.1}", time.as_millis_f64()));
    let kilobytes = |bytes: u64| Some(format!("{:.1}", bytes as f64 / 1e3));
    let limit = row.limits.main();
    [
        Some(format!("{:.2}", row.rate.bits_per_sec() as f64 / 1e6)),
        millis(row.rtt()),
        millis(row.min_rtt),
        kilobytes(row.cwnd_bytes),
        kilobytes(row.in_flight_bytes),
        row.resent_share().map(|share| format!("{:.2}", share * 100.0)),
        limit.map(|(limit, _)| limit.name().to_owned()),
        limit.map(|(_, share)| format!("{:.0}", share * 100.0)),
        row.bbr.map(|state| state.name().to_owned()),
    ]
    .map(|cell| cell.unwrap_or_else(|| "-".to_owned()))
}

fn line(name: &str, width: usize, second: &str, cells: &[String; 9]) -> String {
    let mut line = format!("{name:<width$}  {second:<SECOND$}");
    for ((cell, width), is_text) in cells.iter().zip(WIDTHS).zip(TEXTS) {
        let cell = if is_text { format!("  {cell:<width$}") } else { format!(" {cell:>width$}") };
        line.push_str(&cell);
    }
    line.truncate(line.trim_end().len());
    line
}
