//! Aligned text tables.

use serde::{Deserialize, Serialize};

use crate::terminal::{Style, Terminal};
use crate::text::{push_line, width, wrap};

/// Alignment of a column's cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Align {
    /// For words.
    Left,
    /// For numbers.
    Right,
}

/// A column's headings, in two lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Upper heading; adjacent columns with the same one share it. May be empty.
    pub group: String,
    /// Lower heading.
    pub name: String,
    /// Alignment of the cells and of the lower heading.
    pub align: Align,
}

impl Column {
    /// A column of words, without an upper heading.
    pub fn left(name: &str) -> Self {
        Self { group: String::new(), name: name.to_owned(), align: Align::Left }
    }

    /// A column of numbers, without an upper heading.
    pub fn right(name: &str) -> Self {
        Self { align: Align::Right, ..Self::left(name) }
    }
}

/// A table with headings in two lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// The columns, left to right.
    pub columns: Vec<Column>,
    /// The rows, top to bottom; missing cells are empty.
    pub rows: Vec<Vec<String>>,
}

/// Gap between columns of a group, and between groups.
const GAPS: [usize; 2] = [1, 2];

/// Minimum width of a text column.
const NARROWEST: usize = 6;

impl Table {
    /// A table with a cell for each column in every row.
    pub fn new<const N: usize>(
        columns: [Column; N],
        rows: impl IntoIterator<Item = [String; N]>,
    ) -> Self {
        Self { columns: columns.into(), rows: rows.into_iter().map(Vec::from).collect() }
    }

    /// The table from [`Table::render`], with text broken into lines so that it fits `terminal`.
    pub fn fit(&self, terminal: Terminal) -> String {
        self.narrowed(terminal.width).render(terminal.style)
    }

    /// Narrows the text columns to fit `limit`, with texts in as many rows as necessary.
    fn narrowed(&self, limit: usize) -> Self {
        let groups = self.groups();
        let mut widths = self.widths(&groups);
        let gaps = |group: &ColumnGroup<'_>| GAPS[1] + GAPS[0] * (group.end - group.start - 1);
        let gaps = groups.iter().map(gaps).sum::<usize>().saturating_sub(GAPS[1]);
        let least = |column: &Column| match column.align {
            Align::Left => width(&column.name).max(NARROWEST),
            Align::Right => usize::MAX,
        };
        while widths.iter().sum::<usize>() + gaps > limit {
            let columns = self.columns.iter().zip(&mut widths);
            let wide = columns.filter(|(column, width)| least(column) < **width);
            let Some((_, widest)) = wide.max_by_key(|(_, width)| **width) else { break };
            *widest -= 1;
        }
        let rows = self.rows.iter().flat_map(|row| broken(row, &widths));
        Self { columns: self.columns.clone(), rows: rows.collect() }
    }

    /// The table as lines with newlines. A line of empty headings is omitted.
    pub fn render(&self, style: Style) -> String {
        let groups = self.groups();
        let widths = self.widths(&groups);
        let names = self.columns.iter().map(|c| c.name.as_str());
        let mut out = String::new();
        for heading in [group_line(&groups, &widths), self.line(names, &groups, &widths)] {
            if !heading.trim().is_empty() {
                push_line(&mut out, &style.bold(heading.trim_end()));
            }
        }
        for row in &self.rows {
            let cells = row.iter().map(String::as_str);
            push_line(&mut out, self.line(cells, &groups, &widths).trim_end());
        }
        out
    }

    /// Runs of adjacent columns with the same upper heading; without one, each column is separate.
    fn groups(&self) -> Vec<ColumnGroup<'_>> {
        let mut groups: Vec<ColumnGroup<'_>> = Vec::new();
        for (at, column) in self.columns.iter().enumerate() {
            match groups.last_mut() {
                Some(group) if !group.title.is_empty() && group.title == column.group => {
                    group.end = at + 1;
                }
                _ => groups.push(ColumnGroup { title: &column.group, start: at, end: at + 1 }),
            }
        }
        groups
    }

    /// Width of each column; the first of a group is widened if the group's title needs it.
    fn widths(&self, groups: &[ColumnGroup<'_>]) -> Vec<usize> {
        let cell = |at: usize| self.rows.iter().filter_map(move |row| row.get(at));
        let of = |at: usize| cell(at).map(|text| width(text)).max().unwrap_or(0);
        let mut widths: Vec<usize> = (self.columns.iter().enumerate())
            .map(|(at, column)| of(at).max(width(&column.name)))
            .collect();
        for group in groups {
            widths[group.start] += width(group.title).saturating_sub(group.span(&widths));
        }
        widths
    }

    fn line<'a>(
        &self,
        cells: impl Iterator<Item = &'a str>,
        groups: &[ColumnGroup<'_>],
        widths: &[usize],
    ) -> String {
        let mut out = String::new();
        for (at, cell) in cells.enumerate().take(self.columns.len()) {
            if at > 0 {
                let new_group = groups.iter().any(|group| group.start == at);
                out.push_str(&" ".repeat(GAPS[usize::from(new_group)]));
            }
            out.push_str(&pad(cell, widths[at], self.columns[at].align));
        }
        out
    }
}

/// Columns `start..end` under one title.
struct ColumnGroup<'a> {
    title: &'a str,
    start: usize,
    end: usize,
}

impl ColumnGroup<'_> {
    fn span(&self, widths: &[usize]) -> usize {
        let columns = self.start..self.end;
        GAPS[0] * (columns.len() - 1) + widths[columns].iter().sum::<usize>()
    }
}

/// A row split into as many rows as its longest text needs.
fn broken(row: &[String], widths: &[usize]) -> Vec<Vec<String>> {
    let lines = |(at, cell): (usize, &String)| match widths.get(at) {
        Some(limit) if width(cell) > *limit => wrap(cell, *limit),
        _ => vec![cell.clone()],
    };
    let cells: Vec<Vec<String>> = row.iter().enumerate().map(lines).collect();
    let height = cells.iter().map(Vec::len).max().unwrap_or(1);
    let line = |n: usize| cells.iter().map(move |cell| cell.get(n).cloned().unwrap_or_default());
    (0..height).map(|n| line(n).collect()).collect()
}

/// Titles over one column are right-aligned like its figures; over several columns they are
/// centred.
fn group_line(groups: &[ColumnGroup<'_>], widths: &[usize]) -> String {
    let titles = groups.iter().map(|group| {
        let span = group.span(widths);
        if group.end - group.start > 1 {
            return format!("{:^span$}", group.title);
        }
        pad(group.title, span, Align::Right)
    });
    titles.collect::<Vec<_>>().join(&" ".repeat(GAPS[1]))
}

fn pad(text: &str, width: usize, align: Align) -> String {
    match align {
        Align::Left => format!("{text:<width$}"),
        Align::Right => format!("{text:>width$}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(group: &str, name: &str, align: Align) -> Column {
        Column { group: group.to_owned(), name: name.to_owned(), align }
    }

    fn table() -> Table {
        let columns = vec![
            column("", "", Align::Left),
            column("RTT ms", "p50", Align::Right),
            column("RTT ms", "p95", Align::Right),
            column("wide heading", "%", Align::Right),
        ];
        let row = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
        let rows = vec![row(["bbr3", "40.1", "61.0", "0.5"]), row(["µ", "9.0", "1000.0", "-"])];
        Table { columns, rows }
    }

    #[test]
    fn aligns_and_centres() {
        let expected = "        RTT ms     wide heading
       p50    p95             %
bbr3  40.1   61.0           0.5
µ      9.0 1000.0             -
";
        assert_eq!(table().render(Style::Plain), expected);
    }

    #[test]
    fn escape_sequences_only_on_request() {
        let plain = table().render(Style::Plain);
        let ansi = table().render(Style::Ansi);
        assert!(!plain.contains('\u{1b}'));
        assert_eq!(ansi.replace("\u{1b}[1m", "").replace("\u{1b}[0m", ""), plain);
    }

    #[test]
    fn short_rows_are_padded() {
        let mut table = table();
        table.rows.push(vec!["x".to_owned()]);
        assert!(table.render(Style::Plain).ends_with("\nx\n"));
    }

    #[test]
    fn words_are_broken_until_the_table_fits() {
        let columns = vec![
            column("", "", Align::Left),
            column("", "what", Align::Left),
            column("RTT", "ms", Align::Right),
        ];
        let long = "completion.p50 in a very/long/path/without/any/space";
        let rows = vec![
            ["✗ missed", long, "1000"].map(str::to_owned).to_vec(),
            ["✓ met", "short", "2"].map(str::to_owned).to_vec(),
        ];
        let table = Table { columns, rows };
        assert_eq!(
            table.fit(Terminal { style: Style::Plain, width: 80 }),
            table.render(Style::Plain)
        );
        let expected = "                           RTT
          what              ms
✗ missed  completion.p50  1000
          in a
          very/long/path
          /without/any/s
          pace
✓ met     short              2
";
        assert_eq!(table.fit(Terminal { style: Style::Plain, width: 30 }), expected);
        for width in 24..80 {
            let text = table.fit(Terminal { style: Style::Plain, width });
            assert!(text.lines().all(|line| crate::width(line) <= width), "{width}:\n{text}");
        }
    }
}
