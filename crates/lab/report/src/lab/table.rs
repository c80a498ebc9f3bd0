//! Results for a terminal.

use uncork_terminal::{
    Align, Column, Style, Table, Terminal, printable, push_bold, push_line, width, wrap,
};

use super::document::{LabDocument, Threshold};
use super::published::{Published, Verdict};
use super::results::{ResultRows, quantity};
use super::suite::{SuiteDocument, missed, score, who_missed};
use super::verdict::verdicts;
use crate::words;

/// Met thresholds that are not open are only listed up to this number.
const MET_LISTED: usize = 20;

impl LabDocument {
    /// The answers; the thresholds, missed ones first; the results, in as many tables as the width
    /// requires; and the comparison with published results.
    pub fn text(&self, terminal: impl Into<Terminal>) -> String {
        let terminal = terminal.into();
        let mut out = String::new();
        push_doubts(&mut out, self, terminal);
        push_answers(&mut out, self, terminal);
        if !self.thresholds.is_empty() {
            out.push_str(&thresholds(self, terminal));
            push_line(&mut out, "");
        }
        let seeds = words::counted(self.seeds, "seed");
        push_bold(&mut out, &format!("{}: {seeds} from {}", self.title, self.first_seed), terminal);
        out.push_str(&results(self, terminal));
        push_published(&mut out, self.published.iter(), terminal);
        out
    }
}

/// Reasons to distrust the results, before anything else is said of them.
pub(super) fn push_doubts(out: &mut String, document: &LabDocument, terminal: Terminal) {
    for doubt in &document.doubts {
        push_bold(out, &format!("Unreliable: {doubt}"), terminal);
    }
}

/// The answers by class, and what has no answer.
pub(super) fn push_answers(out: &mut String, document: &LabDocument, terminal: Terminal) {
    let verdicts = verdicts(document);
    for verdict in &verdicts {
        if verdicts.len() > 1 {
            push_line(out, &terminal.style.dim(&printable(verdict.class)));
        }
        for line in verdict.lines.iter().flat_map(|line| glued(&printable(line), terminal.width)) {
            push_line(out, &terminal.style.bold(&line));
        }
        push_line(out, "");
    }
    for sentence in &document.not_compared {
        for line in wrap(&printable(sentence), terminal.width) {
            push_line(out, &line);
        }
    }
    if !document.not_compared.is_empty() {
        push_line(out, "");
    }
}

/// `text` in lines that keep numbers and units together.
fn glued(text: &str, width: usize) -> Vec<String> {
    const GLUE: &str = "\u{1}";
    let joined = [" %", " ms"]
        .iter()
        .fold(text.to_owned(), |text, unit| text.replace(unit, &unit.replace(' ', GLUE)));
    wrap(&joined, width).iter().map(|line| line.replace(GLUE, " ")).collect()
}

/// Results compared with published ones.
fn push_published<'a>(
    out: &mut String,
    entries: impl Iterator<Item = &'a Published>,
    terminal: Terminal,
) {
    let entries: Vec<&Published> = entries.collect();
    if entries.is_empty() {
        return;
    }
    push_line(out, "");
    push_line(out, &terminal.style.bold("Published results"));
    let row = |entry: &&Published| {
        let (verdict, range) = match &entry.judgement {
            Some(judgement) => (judgement.verdict.shown(), judgement.range.as_str()),
            None => ("not judged", ""),
        };
        [verdict, &entry.what, &entry.published, range, &entry.measured].map(printable).to_vec()
    };
    let columns =
        ["", "what", "published", "agrees if", "here"].map(|name| column(name, Align::Left));
    let table = Table { columns: columns.into(), rows: entries.iter().map(row).collect() };
    out.push_str(&table.fit(terminal));
    let differs = |entry: &Published| {
        entry.judgement.as_ref().is_some_and(|judgement| judgement.verdict == Verdict::Differs)
    };
    let noted = |entry: &&&Published| differs(entry) && !entry.note.is_empty();
    for entry in entries.iter().filter(noted) {
        let note = format!("{} ({}): {}", entry.what, entry.source, entry.note);
        for line in wrap(&printable(&note), terminal.width) {
            push_line(out, &terminal.style.dim(&line));
        }
    }
}

impl SuiteDocument {
    /// The scenarios and controllers of a suite that missed thresholds, the thresholds missed, and the
    /// comparison with published results.
    pub fn text(&self, terminal: impl Into<Terminal>) -> String {
        let terminal = terminal.into();
        let mut out = String::new();
        push_bold(&mut out, &self.verdict(), terminal);
        let mut ordered: Vec<&LabDocument> = self.scenarios.iter().collect();
        ordered.sort_by_key(|scenario| missed(scenario).is_empty());
        let row = |scenario: &&LabDocument| {
            let texts = [&scenario.title, &score(scenario), &who_missed(scenario)];
            let texts = texts.map(|text| printable(text)).into_iter();
            std::iter::once(result(missed(scenario).is_empty()).to_owned()).chain(texts).collect()
        };
        let columns =
            ["", "scenario", "thresholds", "missed by"].map(|name| column(name, Align::Left));
        let rows = ordered.iter().map(row).collect();
        out.push_str(&Table { columns: columns.into(), rows }.fit(terminal));
        for scenario in &self.scenarios {
            let missed = missed(scenario);
            if !missed.is_empty() {
                push_line(&mut out, "");
                push_bold(&mut out, &scenario.title, terminal);
                out.push_str(&threshold_table(&missed).fit(terminal));
            }
        }
        let published = self.scenarios.iter().flat_map(|scenario| &scenario.published);
        push_published(&mut out, published, terminal);
        out
    }
}

/// `2 of 7 thresholds missed`
pub(super) fn verdict(thresholds: &[Threshold]) -> String {
    let missed = thresholds.iter().filter(|threshold| !threshold.passed).count();
    let verdict = match (missed, thresholds.len()) {
        (0, 1) => "The threshold is met".to_owned(),
        (0, 2) => "Both thresholds met".to_owned(),
        (0, n) => format!("All {n} thresholds met"),
        (_, 1) => "The threshold is missed".to_owned(),
        (missed, n) => format!("{missed} of {n} thresholds missed"),
    };
    match thresholds.iter().filter(|threshold| threshold.is_open()).count() {
        0 => format!("{verdict}."),
        open => format!("{verdict}; {open} within the noise: run more seeds."),
    }
}

/// The measured value with its unit, and its interval if that contains the bound.
pub(super) fn measured(threshold: &Threshold) -> String {
    let Some(value) = threshold.measured else { return "nothing".to_owned() };
    let shown = |value: f64| quantity(value, &threshold.unit);
    match (threshold.low, threshold.high) {
        (Some(low), Some(high)) if threshold.is_open() => {
            format!("{}, within the noise: {} to {}", shown(value), shown(low), shown(high))
        }
        _ => shown(value),
    }
}

fn thresholds(document: &LabDocument, terminal: Terminal) -> String {
    let mut out = String::new();
    push_bold(&mut out, &verdict(&document.thresholds), terminal);
    let mut ordered: Vec<&Threshold> = document.thresholds.iter().collect();
    ordered.sort_by_key(|threshold| threshold.passed);
    let is_settled = |threshold: &&Threshold| threshold.passed && !threshold.is_open();
    let settled = ordered.iter().filter(|threshold| is_settled(threshold)).count();
    if settled > MET_LISTED {
        ordered.retain(|threshold| !is_settled(threshold));
    }
    if !ordered.is_empty() {
        out.push_str(&threshold_table(&ordered).fit(terminal));
    }
    if settled > MET_LISTED {
        let note = format!("Not listed: {settled} met; the report and the JSON have them.");
        for line in wrap(&note, terminal.width) {
            push_line(&mut out, &line);
        }
    }
    out
}

fn result(passed: bool) -> &'static str {
    if passed { "✓ met" } else { "✗ missed" }
}

fn threshold_table(thresholds: &[&Threshold]) -> Table {
    let with_cell = with_cell(thresholds);
    let row = |threshold: &&Threshold| {
        let Threshold { text, class, cc, cell, passed, .. } = threshold;
        let who = [text, class, cc].into_iter().chain(with_cell.then_some(cell));
        let row =
            std::iter::once(result(*passed).to_owned()).chain(who.map(|text| printable(text)));
        row.chain([printable(&measured(threshold))]).collect()
    };
    let names = ["", "threshold", "class", "controller"].into_iter();
    let names = names.chain(with_cell.then_some("where")).map(|name| (name, Align::Left));
    let names = names.chain([("measured", Align::Right)]);
    let columns = names.map(|(name, align)| column(name, align)).collect();
    Table { columns, rows: thresholds.iter().map(row).collect() }
}

/// Whether the cells of `thresholds` need a column.
pub(super) fn with_cell(thresholds: &[&Threshold]) -> bool {
    thresholds.iter().any(|threshold| !threshold.cell.is_empty())
}

fn column(name: &str, align: Align) -> Column {
    Column { group: String::new(), name: printable(name), align }
}

/// The results in a table, without the least important columns if it is too wide, and where to find
/// the rest. If what must not be missing is too wide, in several tables.
fn results(document: &LabDocument, terminal: Terminal) -> String {
    let all = ResultRows::of(document);
    let shown = all.fitting(|kept| fits(&part(&all, kept, true), terminal.width));
    let more = all.columns.len() - shown.columns.len();
    let mut out = String::new();
    for table in tables(&shown, terminal.width) {
        push_line(&mut out, "");
        out.push_str(&table.fit(terminal));
    }
    if more > 0 {
        let more = words::counted(more as u64, "column");
        let note = format!("{more} left out: see --format csv, or the report of -o DIR.");
        for line in wrap(&note, terminal.width) {
            push_line(&mut out, &terminal.style.dim(&line));
        }
    }
    out
}

/// Groups of columns, as many next to each other as fit; each part repeats the row labels.
fn tables(results: &ResultRows, limit: usize) -> Vec<Table> {
    let mut parts: Vec<Vec<usize>> = vec![Vec::new()];
    let part = |nth: usize, columns: &[usize]| part(results, columns, nth == 0);
    let all: Vec<usize> = (0..results.columns.len()).collect();
    for group in all.chunk_by(|a, b| results.columns[*a].group == results.columns[*b].group) {
        let nth = parts.len() - 1;
        let last = &mut parts[nth];
        let joined = [last, group].concat();
        if last.is_empty() || fits(&part(nth, &joined), limit) {
            *last = joined;
        } else {
            parts.push(group.to_vec());
        }
    }
    parts.iter().enumerate().map(|(nth, columns)| part(nth, columns)).collect()
}

/// Whether a table fits without broken labels.
pub(super) fn fits(table: &Table, limit: usize) -> bool {
    table.render(Style::Plain).lines().all(|line| width(line) <= limit)
}

/// The row labels with some of the figures; the first part also has the number of finished flows.
fn part(results: &ResultRows, columns: &[usize], is_first: bool) -> Table {
    let is_shown = |name: &String| is_first || name != "finished";
    let shown: Vec<bool> = results.labels.iter().map(is_shown).collect();
    let labels = results.labels.iter().filter(|name| is_shown(name));
    let labels = labels.map(|name| column(name, Align::Left));
    let figures = columns.iter().map(|at| &results.columns[*at]);
    let figures = figures.map(|c| Column {
        group: printable(&c.group),
        name: printable(&c.name),
        align: Align::Right,
    });
    let rows = results.rows.iter().map(|row| {
        let cells = columns.iter().map(|at| row.cells[*at].as_ref());
        let cells =
            cells.map(|cell| cell.map_or_else(|| "-".to_owned(), |cell| cell.value.clone()));
        let labels = row.labels.iter().zip(&shown).filter(|(_, shown)| **shown);
        labels.map(|(label, _)| printable(label)).chain(cells).collect()
    });
    Table { columns: labels.chain(figures).collect(), rows: rows.collect() }
}
