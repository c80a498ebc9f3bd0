//! The summary of a comparison for a terminal.

use crate::document::CompareDocument;
use crate::metrics::{Row, Summary};
use crate::table::{Align, Column, Style, Table, push_line, wrap};
use crate::words;

/// Columns of the terminal that the text is made for.
const WIDTH: usize = 100;

/// The path and the workload in words, a row for each controller, and the verdict. Mixes list each
/// of their flows below their row.
pub fn compare_table(document: &CompareDocument, style: Style) -> String {
    let mut out = header(document, style);
    out.push('\n');
    out.push_str(&table(document).render(style));
    out.push('\n');
    for note in words::unfinished(document) {
        push_line(&mut out, &note);
    }
    for line in document.verdict.lines().flat_map(|line| wrap(line, WIDTH)) {
        push_line(&mut out, &style.bold(&line));
    }
    out
}

fn header(document: &CompareDocument, style: Style) -> String {
    let seeds = words::counted(document.seeds, "seed");
    let entries = [
        ("path", words::path(&document.path)),
        ("buffer", words::buffer(&document.path)),
        ("workload", format!("{}; medians over {seeds}", words::workload(document))),
    ];
    let mut out = String::new();
    for (name, text) in entries {
        let mut name = format!("{name:<10}");
        for line in wrap(&text, WIDTH - name.len()) {
            push_line(&mut out, &format!("{}{line}", style.dim(&name)));
            name = " ".repeat(name.len());
        }
    }
    out
}

fn table(document: &CompareDocument) -> Table {
    let summary = Summary::of(document);
    let label = Column { group: String::new(), name: String::new(), align: Align::Left };
    let figures = summary.metrics.iter().map(|metric| Column {
        group: metric.group.to_owned(),
        name: metric.name.to_owned(),
        align: Align::Right,
    });
    Table {
        columns: std::iter::once(label).chain(figures).collect(),
        rows: summary.rows.into_iter().map(cells).collect(),
    }
}

fn cells(row: Row) -> Vec<String> {
    let label = if row.is_flow { format!("  {}", row.label) } else { row.label };
    let figures = row.cells.into_iter().map(|cell| cell.unwrap_or_else(|| "-".to_owned()));
    std::iter::once(label).chain(figures).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn transfers() {
        let expected = "\
path      20 Mbit/s, 40 ms RTT, 1 % random loss after the bottleneck
buffer    100 kB (67 packets, 1 BDP)
workload  10 MB; medians over 20 seeds

           completion s     goodput  link      RTT ms       queue ms   resent  RTOs
           p10   p50   p90   Mbit/s     %   min  p50  p95   p50   p95       %
bbr3      4.39  4.42  4.60    18.10  90.5  40.1 44.2 61.3  4.10 21.30    1.02     0
cubic     9.80 12.40 15.90     6.45  32.2  40.1 40.9 48.7  0.30  8.40    1.01     0
newreno  14.20 18.30 24.70     4.37  21.9  40.1 40.4 44.0  0.10  3.90    1.00     1

bbr3 finishes 10 MB in 4.42 s, 2.8 times as fast as cubic (12.4 s) and 4.1 times as fast as newreno
(18.3 s).
It pays with a longer queue: 21 ms at the 95th percentile, against 8.4 ms for cubic.
";
        assert_eq!(compare_table(&sample::transfers(), Style::Plain), expected);
    }

    #[test]
    fn mix() {
        let expected = "\
path      20 Mbit/s, 40 ms RTT, 1 % random loss after the bottleneck
buffer    100 kB (67 packets, 1 BDP)
workload  2 flows for 30 s; medians over 20 seeds

            goodput  link      RTT ms      queue ms   resent  RTOs   Jain  share
             Mbit/s     %   min  p50  p95   p50  p95       %                   %
2xbbr3        18.90  94.5  40.1 52.0 77.1  12.2 36.4    1.12     0  0.999
bbr3+cubic    18.70  93.5  40.1 50.3 71.9  10.6 31.0    1.08     0  0.633
  bbr3        16.20                                                         86.6
  cubic        2.50                                                         13.4

Beside bbr3, cubic keeps 13 % of the goodput.
";
        assert_eq!(compare_table(&sample::mix(), Style::Plain), expected);
    }

    #[test]
    fn fits_the_terminal() {
        let mut document = sample::mix();
        document.verdict = "word ".repeat(100);
        for line in compare_table(&document, Style::Plain).lines() {
            assert!(line.chars().count() <= WIDTH, "{line}");
        }
    }

    #[test]
    fn says_what_did_not_finish() {
        let mut document = sample::transfers();
        document.results[1].unfinished = 3;
        document.results[1].completion_s = None;
        let text = compare_table(&document, Style::Plain);
        assert!(text.contains("\ncubic: 3 of 20 transfers did not finish.\n"), "{text}");
        let row = text.lines().find(|line| line.starts_with("cubic ")).unwrap();
        assert_eq!(row.split_whitespace().filter(|cell| *cell == "-").count(), 3, "{row}");
    }

    #[test]
    fn ansi_differs_only_in_escapes() {
        let ansi = compare_table(&sample::transfers(), Style::Ansi);
        let stripped = ["\u{1b}[0m", "\u{1b}[1m", "\u{1b}[2m"]
            .iter()
            .fold(ansi.clone(), |text, escape| text.replace(escape, ""));
        assert_ne!(ansi, stripped);
        assert_eq!(stripped, compare_table(&sample::transfers(), Style::Plain));
    }
}
