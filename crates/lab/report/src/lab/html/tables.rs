//! Thresholds, published figures and results as HTML tables.

use crate::escape::escape;
use crate::lab::document::{LabDocument, Threshold};
use crate::lab::published::{Judgement, Published, Verdict};
use crate::lab::results::{ResultColumn, ResultRow, ResultRows};
use crate::lab::table::{measured, verdict, with_cell};
use crate::words;

/// Maximum rows of results on the page; the CSV has all.
const MAX_ROWS: usize = 300;

/// A longer table scrolls separately, so that the figures are not too far below it.
const TALL: usize = 15;

/// Missed thresholds, then (collapsed) the met ones. Link names start with `prefix`.
pub(super) fn thresholds(document: &LabDocument, prefix: &str) -> String {
    if document.thresholds.is_empty() {
        return String::new();
    }
    let (met, missed): (Vec<&Threshold>, Vec<&Threshold>) =
        document.thresholds.iter().partition(|threshold| threshold.passed);
    let (class, sign) = match (missed.len(), met.len()) {
        (0, _) => ("passed", "<span aria-hidden=\"true\">✓</span> "),
        _ => ("failed", "<span aria-hidden=\"true\">✗</span> "),
    };
    let verdict = escape(&verdict(&document.thresholds));
    let table = |caption: &str, thresholds: &[&Threshold]| match thresholds {
        [] => String::new(),
        some => threshold_table(caption, some),
    };
    let mut tables = table("Missed", &missed);
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
        let who = [("class", class), ("controller", cc)].into_iter();
        let who = who.chain(with_cell.then_some(("where", cell)));
        let who: String = who.map(|(heading, text)| words(heading, text)).collect();
        format!(
            "<tr><th scope=\"row\" class=\"broad\">{}</th>{who}<td data-h=\"measured\">{}</td></tr>\n",
            escape(text),
            escape(&measured(threshold))
        )
    };
    let names = ["class", "controller"].into_iter().chain(with_cell.then_some("where"));
    let heading = |name: &str| format!("<th scope=\"col\" class=\"l\">{name}</th>");
    let names: String = names.map(heading).collect();
    let rows: String = thresholds.iter().map(row).collect();
    cards(&format!(
        "<caption class=\"aside\">{caption}</caption>\n<thead>\n<tr><th scope=\"col\">threshold</th>\
         {names}<th scope=\"col\">measured</th></tr>\n</thead>\n<tbody>\n{rows}</tbody>\n"
    ))
}

fn words(heading: &str, text: &str) -> String {
    format!("<td class=\"l\" data-h=\"{heading}\">{}</td>", escape(text))
}

/// Results compared with published ones. Link names start with `prefix`.
pub(super) fn published(document: &LabDocument, prefix: &str) -> String {
    if document.published.is_empty() {
        return String::new();
    }
    let judged = document.published.iter().filter_map(|entry| entry.judgement.as_ref());
    let [agree, differ, open] = [Verdict::Agrees, Verdict::Differs, Verdict::Open]
        .map(|verdict| judged.clone().filter(|judgement| judgement.verdict == verdict).count());
    let rows: String = document.published.iter().map(published_row).collect();
    let table = cards(&format!(
        "<caption>{agree} agree, {differ} differ, {open} are open: their interval is partly outside the \
         range, or the interval is missing.</caption>\n<thead>\n\
         <tr><th scope=\"col\">what</th><th scope=\"col\" class=\"l\">published</th>\
         <th scope=\"col\" class=\"l\">agrees if</th><th scope=\"col\" class=\"l\">here</th>\
         <th scope=\"col\" class=\"l\">verdict</th>\
         <th scope=\"col\" class=\"l\">source</th></tr>\n</thead>\n<tbody>\n{rows}</tbody>\n"
    ));
    // A subsection has a lower heading level.
    let level = if prefix.is_empty() { "h2" } else { "h3" };
    format!(
        "<section id=\"{}published\">\n<{level}>Published results</{level}>\n{table}</section>\n",
        escape(prefix)
    )
}

fn published_row(entry: &Published) -> String {
    let (range, class, verdict, from) = match &entry.judgement {
        None => ("", "", "not judged", ""),
        Some(Judgement { verdict, range, range_from }) => {
            let class = match verdict {
                Verdict::Agrees => " yes",
                Verdict::Differs => " no",
                Verdict::Open => "",
            };
            (range.as_str(), class, verdict.shown(), range_from.as_str())
        }
    };
    let line = |label: &str, text: &str| match text {
        "" => String::new(),
        text => format!("<br/>{label}{}", escape(text)),
    };
    format!(
        "<tr class=\"words\"><th scope=\"row\" class=\"broad\">{}</th>{}{}{}\
         <td class=\"l{class}\" data-h=\"verdict\">{verdict}</td>\
         <td class=\"l soft broad\">{}{}{}</td></tr>\n",
        escape(&entry.what),
        words("published", &entry.published),
        words("agrees if", range),
        words("here", &entry.measured),
        escape(&entry.source),
        line("range ", from),
        line("", &entry.note),
    )
}

/// A row per class and cell: the main columns, then (collapsed) all.
pub(super) fn results(document: &LabDocument) -> String {
    let all = ResultRows::of(document);
    if all.rows.is_empty() {
        return String::new();
    }
    let essential = all.essential();
    let left_out = match all.rows.len().saturating_sub(MAX_ROWS) {
        0 => String::new(),
        n => format!(" {} more: see the CSV.", words::counted(n as u64, "row")),
    };
    let note = format!("Below a figure: {}, where its ends differ.{left_out}", document.intervals);
    let table = result_table(&essential, &note);
    let rest = if essential.columns.len() < all.columns.len() {
        let table = result_table(&all, &note);
        format!(
            "<details class=\"numbers\">\n<summary>All {} columns</summary>\n{table}</details>\n",
            all.columns.len()
        )
    } else {
        String::new()
    };
    let tall = if all.rows.len() > TALL { " class=\"tall\"" } else { "" };
    format!("<section id=\"results\"{tall}>\n<h2>Results</h2>\n{table}{rest}</section>\n")
}

fn result_table(results: &ResultRows, caption: &str) -> String {
    let rows: String =
        results.rows.iter().take(MAX_ROWS).map(|row| result_row(results, row)).collect();
    let table = format!(
        "<caption>{}</caption>\n<thead>\n{}</thead>\n<tbody>\n{rows}</tbody>\n",
        escape(caption),
        headings(results)
    );
    cards(&table)
}

/// Two header lines: groups that span columns, and the columns' names.
fn headings(results: &ResultRows) -> String {
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

/// Cells include their headings: on a narrow page each row becomes a card.
fn result_row(results: &ResultRows, row: &ResultRow) -> String {
    let label = |(n, (heading, label)): (usize, (&String, &String))| {
        let heading = escape(heading);
        let label = escape(label);
        match n {
            0 => format!("<th scope=\"row\" data-h=\"{heading}\">{label}</th>"),
            _ => format!("<td class=\"l\" data-h=\"{heading}\">{label}</td>"),
        }
    };
    let labels: String = results.labels.iter().zip(&row.labels).enumerate().map(label).collect();
    let cells = results.columns.iter().zip(&row.cells).map(|(column, cell)| {
        let heading = escape(&format!("{} {}", column.group, column.name));
        let Some(cell) = cell else { return format!("<td data-h=\"{heading}\">–</td>") };
        let interval = cell.interval.as_ref().map(|text| format!("<br/><small>{text}</small>"));
        format!("<td data-h=\"{heading}\">{}{}</td>", cell.value, interval.unwrap_or_default())
    });
    format!("<tr>{labels}{}</tr>\n", cells.collect::<String>())
}

/// A table that scrolls separately if the page is too narrow.
pub(super) fn wide(table: &str) -> String {
    scrolling("wide", table)
}

/// The same; on a narrow page each row becomes a card.
pub(super) fn cards(table: &str) -> String {
    scrolling("wide cards", table)
}

fn scrolling(class: &str, table: &str) -> String {
    format!(
        "<div class=\"{class}\" tabindex=\"0\" role=\"group\" aria-label=\"Table\">\n<table>\n{table}</table>\n\
         </div>\n"
    )
}
