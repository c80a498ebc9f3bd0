//! A laboratory run for a terminal: what failed first, then what was found.

use super::document::{LabDocument, Published, Threshold};
use super::results::{Results, quantity};
use super::suite::{SuiteDocument, failed, score, who_failed};
use super::verdict::verdicts;
use crate::table::{Align, Column, Style, Table, printable, push_line, width, wrap};
use crate::words;

/// Columns of the terminal that the text is made for.
const WIDTH: usize = 100;
/// Thresholds that are met, and not open, are listed if there are no more of them.
const MET_LISTED: usize = 20;

/// The answers; the thresholds, failed ones first; the results, in as many tables as the width asks
/// for; and how they compare with what was published.
pub fn lab_table(document: &LabDocument, style: Style) -> String {
    let mut out = String::new();
    for doubt in &document.doubts {
        for line in wrap(&printable(&format!("Doubtful: {doubt}")), WIDTH) {
            push_line(&mut out, &style.bold(&line));
        }
    }
    push_answers(&mut out, document, style);
    if !document.thresholds.is_empty() {
        out.push_str(&thresholds(document, style));
        push_line(&mut out, "");
    }
    let seeds = words::counted(document.seeds, "seed");
    let title = format!("{}: {seeds} from {}", document.title, document.first_seed);
    for line in wrap(&printable(&title), WIDTH) {
        push_line(&mut out, &style.bold(&line));
    }
    for table in results(document) {
        push_line(&mut out, "");
        out.push_str(&table.render(style));
    }
    push_published(&mut out, document.published.iter(), style);
    out
}

/// The answers, population by population.
pub(super) fn push_answers(out: &mut String, document: &LabDocument, style: Style) {
    let verdicts = verdicts(document);
    for verdict in &verdicts {
        if verdicts.len() > 1 {
            push_line(out, &style.dim(&printable(verdict.class)));
        }
        for line in verdict.lines.iter().flat_map(|line| glued(&printable(line))) {
            push_line(out, &style.bold(&line));
        }
        push_line(out, "");
    }
}

/// `text` in lines that part no number from its unit.
fn glued(text: &str) -> Vec<String> {
    const GLUE: &str = "\u{1}";
    let joined = [" %", " ms"]
        .iter()
        .fold(text.to_owned(), |text, unit| text.replace(unit, &unit.replace(' ', GLUE)));
    wrap(&joined, WIDTH).iter().map(|line| line.replace(GLUE, " ")).collect()
}

fn push_published<'a>(
    out: &mut String,
    entries: impl Iterator<Item = &'a Published>,
    style: Style,
) {
    let entries: Vec<String> = entries.map(|entry| published(entry, style)).collect();
    if !entries.is_empty() {
        push_line(out, "");
        push_line(out, &style.bold("Beside what was published"));
        out.extend(entries);
    }
}

/// Which scenarios of a suite failed and for whom; what each of these missed; and how the scenarios
/// compare with what was published.
pub fn suite_table(document: &SuiteDocument, style: Style) -> String {
    let mut out = String::new();
    push_line(&mut out, &style.bold(&document.verdict()));
    let mut ordered: Vec<&LabDocument> = document.scenarios.iter().collect();
    ordered.sort_by_key(|scenario| failed(scenario).is_empty());
    let row = |scenario: &&LabDocument| {
        let told = [&scenario.title, &score(scenario), &who_failed(scenario)];
        let told = told.map(|text| printable(text)).into_iter();
        std::iter::once(result(failed(scenario).is_empty()).to_owned()).chain(told).collect()
    };
    let columns = ["", "scenario", "thresholds", "failed by"].map(|name| column(name, Align::Left));
    let rows = ordered.iter().map(row).collect();
    out.push_str(&Table { columns: columns.into(), rows }.render(style));
    for scenario in &document.scenarios {
        let failed = failed(scenario);
        if !failed.is_empty() {
            push_line(&mut out, "");
            push_line(&mut out, &style.bold(&printable(&scenario.title)));
            out.push_str(&threshold_table(&failed).render(style));
        }
    }
    let published = document.scenarios.iter().flat_map(|scenario| &scenario.published);
    push_published(&mut out, published, style);
    out
}

/// `2 of 7 thresholds failed`
pub(super) fn verdict(thresholds: &[Threshold]) -> String {
    let failed = thresholds.iter().filter(|threshold| !threshold.passed).count();
    let verdict = match (failed, thresholds.len()) {
        (0, 1) => "The threshold is met.".to_owned(),
        (0, n) => format!("All {n} thresholds are met."),
        (failed, n) => format!("{failed} of {} failed.", words::counted(n as u64, "threshold")),
    };
    match thresholds.iter().filter(|threshold| threshold.is_open()).count() {
        0 => verdict,
        open => format!("{verdict} More seeds could decide {open} otherwise."),
    }
}

/// What a threshold measured, with its unit; and its interval, if the bound is within.
pub(super) fn measured(threshold: &Threshold) -> String {
    let Some(value) = threshold.measured else { return "nothing".to_owned() };
    let shown = |value: f64| quantity(value, &threshold.unit);
    match (threshold.low, threshold.high) {
        (Some(low), Some(high)) if threshold.is_open() => {
            format!("{}, open: {} to {}", shown(value), shown(low), shown(high))
        }
        _ => shown(value),
    }
}

fn thresholds(document: &LabDocument, style: Style) -> String {
    let mut out = String::new();
    push_line(&mut out, &style.bold(&verdict(&document.thresholds)));
    let mut ordered: Vec<&Threshold> = document.thresholds.iter().collect();
    ordered.sort_by_key(|threshold| threshold.passed);
    let is_settled = |threshold: &&Threshold| threshold.passed && !threshold.is_open();
    let settled = ordered.iter().filter(|threshold| is_settled(threshold)).count();
    if settled > MET_LISTED {
        ordered.retain(|threshold| !is_settled(threshold));
    }
    if !ordered.is_empty() {
        out.push_str(&threshold_table(&ordered).render(style));
    }
    if settled > MET_LISTED {
        push_line(
            &mut out,
            &format!("Not listed: {settled} that are met; the report and the JSON have them."),
        );
    }
    out
}

fn result(passed: bool) -> &'static str {
    if passed { "✓ met" } else { "✗ FAILED" }
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

/// Whether there is something to say of the cells of `thresholds`.
pub(super) fn with_cell(thresholds: &[&Threshold]) -> bool {
    thresholds.iter().any(|threshold| !threshold.cell.is_empty())
}

fn column(name: &str, align: Align) -> Column {
    Column { group: String::new(), name: printable(name), align }
}

/// Groups of columns, as many of them side by side as fit; the rows' labels stand before each part.
fn results(document: &LabDocument) -> Vec<Table> {
    let results = Results::of(document);
    let mut parts: Vec<Vec<usize>> = Vec::new();
    let all: Vec<usize> = (0..results.columns.len()).collect();
    for group in all.chunk_by(|a, b| results.columns[*a].group == results.columns[*b].group) {
        let joined = parts.last().map(|part| [part, group].concat());
        match joined.filter(|joined| fits(&part(&results, joined))) {
            Some(joined) => *parts.last_mut().expect("it was joined") = joined,
            None => parts.push(group.to_vec()),
        }
    }
    parts.iter().map(|columns| part(&results, columns)).collect()
}

fn fits(table: &Table) -> bool {
    table.render(Style::Plain).lines().all(|line| width(line) <= WIDTH)
}

fn part(results: &Results, columns: &[usize]) -> Table {
    let labels = results.labels.iter().map(|name| column(name, Align::Left));
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
        row.labels.iter().map(|label| printable(label)).chain(cells).collect()
    });
    Table { columns: labels.chain(figures).collect(), rows: rows.collect() }
}

fn published(entry: &Published, style: Style) -> String {
    let verdict = match entry.agrees {
        Some(true) => "✓ agrees",
        Some(false) => "✗ differs",
        None => "not judged",
    };
    let note = if entry.note.is_empty() { String::new() } else { format!(" {}", entry.note) };
    let text = format!(
        "{}: {} published, {} here ({}).{note}",
        entry.what, entry.published, entry.measured, entry.source
    );
    let mut verdict = format!("{verdict:<12}");
    let mut out = String::new();
    for line in wrap(&printable(&text), WIDTH - verdict.len()) {
        push_line(&mut out, &format!("{}{line}", style.dim(&verdict)));
        verdict = " ".repeat(12);
    }
    out
}
