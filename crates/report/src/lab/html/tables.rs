//! Thresholds, published figures and results as HTML tables.

use crate::escape::escape;
use crate::lab::document::{LabDocument, Published, Threshold};
use crate::lab::results::{ResultColumn, ResultRow, Results};
use crate::lab::table::{measured, verdict, with_cell};
use crate::words;

/// Rows of results that the page shows; the others are in the CSV.
const MOST_ROWS: usize = 300;

/// A table of more rows scrolls by itself, so that the figures are not far below it.
const TALL: usize = 15;

/// What failed, then, folded, what was met. Names for links begin with `prefix`.
pub(super) fn thresholds(document: &LabDocument, prefix: &str) -> String {
    if document.thresholds.is_empty() {
        return String::new();
    }
    let (met, failed): (Vec<&Threshold>, Vec<&Threshold>) =
        document.thresholds.iter().partition(|threshold| threshold.passed);
    let (class, sign) = match (failed.len(), met.len()) {
        (0, _) => ("passed", "<span aria-hidden=\"true\">✓</span> "),
        _ => ("failed", "<span aria-hidden=\"true\">✗</span> "),
    };
    let verdict = escape(&verdict(&document.thresholds));
    let table = |caption: &str, thresholds: &[&Threshold]| match thresholds {
        [] => String::new(),
        some => threshold_table(caption, some),
    };
    let mut tables = table("Failed", &failed);
    if !met.is_empty() {
        let summary = format!("{} met", words::counted(met.len() as u64, "threshold"));
        let table = table("Met", &met);
        tables = format!("{tables}<details>\n<summary>{summary}</summary>\n{table}</details>\n");
    }
    format!(
        "<section id=\"{}thresholds\" class=\"verdict {class}\" aria-label=\"Thresholds\">\n\
         <p class=\"count\">{sign}{verdict}</p>\n{tables}</section>\n",
        escape(prefix)
    )
}

fn threshold_table(caption: &str, thresholds: &[&Threshold]) -> String {
    let with_cell = with_cell(thresholds);
    let row = |threshold: &&Threshold| {
        let Threshold { text, class, cc, cell, .. } = threshold;
        let who = [class, cc].into_iter().chain(with_cell.then_some(cell));
        let who: String = who.map(|text| words(text)).collect();
        format!(
            "<tr><th scope=\"row\">{}</th>{who}<td>{}</td></tr>\n",
            escape(text),
            escape(&measured(threshold))
        )
    };
    let names = ["class", "controller"].into_iter().chain(with_cell.then_some("where"));
    let heading = |name: &str| format!("<th scope=\"col\" class=\"l\">{name}</th>");
    let names: String = names.map(heading).collect();
    let rows: String = thresholds.iter().map(row).collect();
    wide(&format!(
        "<caption class=\"aside\">{caption}</caption>\n<thead>\n<tr><th scope=\"col\">threshold</th>\
         {names}<th scope=\"col\">measured</th></tr>\n</thead>\n<tbody>\n{rows}</tbody>\n"
    ))
}

fn words(text: &str) -> String {
    format!("<td class=\"l\">{}</td>", escape(text))
}

/// The results beside those of others. Names for links begin with `prefix`.
pub(super) fn published(document: &LabDocument, prefix: &str) -> String {
    if document.published.is_empty() {
        return String::new();
    }
    let agree = document.published.iter().filter(|entry| entry.agrees == Some(true)).count();
    let judged = document.published.iter().filter(|entry| entry.agrees.is_some()).count();
    let rows: String = document.published.iter().map(published_row).collect();
    let table = wide(&format!(
        "<caption>{agree} of {judged} that can be judged agree.</caption>\n<thead>\n\
         <tr><th scope=\"col\">what</th><th scope=\"col\" class=\"l\">published</th>\
         <th scope=\"col\" class=\"l\">measured here</th><th scope=\"col\" class=\"l\">agrees</th>\
         <th scope=\"col\" class=\"l\">source</th></tr>\n</thead>\n<tbody>\n{rows}</tbody>\n"
    ));
    // A section of a section has a heading below that.
    let level = if prefix.is_empty() { "h2" } else { "h3" };
    format!(
        "<section id=\"{}published\">\n<{level}>Beside what was published</{level}>\n{table}</section>\n",
        escape(prefix)
    )
}

fn published_row(entry: &Published) -> String {
    let agrees = match entry.agrees {
        Some(true) => "<td class=\"l yes\">✓ yes</td>",
        Some(false) => "<td class=\"l no\">✗ no</td>",
        None => "<td class=\"l\">not judged</td>",
    };
    let note = match entry.note.as_str() {
        "" => String::new(),
        note => format!("<br/>{}", escape(note)),
    };
    format!(
        "<tr class=\"words\"><th scope=\"row\">{}</th><td class=\"l\">{}</td><td class=\"l\">{}</td>\
         {agrees}<td class=\"l soft\">{}{note}</td></tr>\n",
        escape(&entry.what),
        escape(&entry.published),
        escape(&entry.measured),
        escape(&entry.source)
    )
}

/// A row for each class of each cell, with the intervals of its figures below them.
pub(super) fn results(document: &LabDocument) -> String {
    let results = Results::of(document);
    if results.rows.is_empty() {
        return String::new();
    }
    let rows: String =
        results.rows.iter().take(MOST_ROWS).map(|row| result_row(&results, row)).collect();
    let left_out = results.rows.len().saturating_sub(MOST_ROWS);
    let left_out = match left_out {
        0 => String::new(),
        n => format!(
            " {} more are left out here; the CSV has them.",
            words::counted(n as u64, "row")
        ),
    };
    let table = wide(&format!(
        "<caption>Below each figure: {}, where its ends differ from the figure.{left_out}</caption>\n\
         <thead>\n{}</thead>\n<tbody>\n{rows}\
         </tbody>\n",
        escape(&document.intervals),
        headings(&results)
    ));
    let tall = if results.rows.len() > TALL { " class=\"tall\"" } else { "" };
    format!("<section id=\"results\"{tall}>\n<h2>Results</h2>\n{table}</section>\n")
}

/// Two lines: groups, which span their columns, and the columns' own names.
fn headings(results: &Results) -> String {
    let label = |label: &String| {
        format!("<th rowspan=\"2\" scope=\"col\" class=\"l\">{}</th>", escape(label))
    };
    let labels: String = results.labels.iter().map(label).collect();
    let groups = results.columns.chunk_by(|a, b| a.group == b.group).map(|group| {
        let scope = if group.len() == 1 { "col" } else { "colgroup" };
        format!(
            "<th scope=\"{scope}\" colspan=\"{}\">{}</th>",
            group.len(),
            escape(&group[0].group)
        )
    });
    let name = |column: &ResultColumn| format!("<th scope=\"col\">{}</th>", escape(&column.name));
    format!(
        "<tr>{labels}{}</tr>\n<tr>{}</tr>\n",
        groups.collect::<String>(),
        results.columns.iter().map(name).collect::<String>()
    )
}

fn result_row(results: &Results, row: &ResultRow) -> String {
    let label = |(n, label): (usize, &String)| match n {
        0 => format!("<th scope=\"row\">{}</th>", escape(label)),
        _ => format!("<td class=\"l\">{}</td>", escape(label)),
    };
    let labels: String = row.labels.iter().enumerate().map(label).collect();
    let cells = results.columns.iter().zip(&row.cells).map(|(_, cell)| {
        let Some(cell) = cell else { return "<td>–</td>".to_owned() };
        let interval = cell.interval.as_ref().map(|text| format!("<br/><small>{text}</small>"));
        format!("<td>{}{}</td>", cell.value, interval.unwrap_or_default())
    });
    format!("<tr>{labels}{}</tr>\n", cells.collect::<String>())
}

/// A table that scrolls by itself where the page is too narrow for it.
pub(super) fn wide(table: &str) -> String {
    format!(
        "<div class=\"wide\" tabindex=\"0\" role=\"group\" aria-label=\"Table\">\n<table>\n{table}</table>\n\
         </div>\n"
    )
}
