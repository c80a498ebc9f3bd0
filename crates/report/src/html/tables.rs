//! The path and the summary as HTML tables.

use crate::document::CompareDocument;
use crate::escape::escape;
use crate::metrics::{Metric, Row, Summary};
use crate::words;

/// The path and the workload, as terms with their values.
pub(super) fn path(document: &CompareDocument) -> String {
    let path = &document.path;
    let entries = [
        ("Bottleneck", words::link_rate(path)),
        ("Round trip", words::rtt(path)),
        ("Loss", words::loss(path)),
        ("Buffer", words::buffer(path)),
        ("Workload", words::workload(document)),
        ("Runs", format!("{} each", words::counted(document.seeds, "seed"))),
    ];
    let entry = |(term, value): (&str, String)| {
        format!("<div><dt>{term}</dt><dd>{}</dd></div>\n", escape(&value))
    };
    let entries: Vec<String> = entries.into_iter().map(entry).collect();
    format!("<dl class=\"path\" aria-label=\"Path and workload\">\n{}</dl>\n", entries.concat())
}

/// The summary with a row for each controller.
pub(super) fn summary(document: &CompareDocument) -> String {
    let summary = Summary::of(document);
    let rows: Vec<String> = summary.rows.iter().map(row).collect();
    format!(
        "<section>\n<h2>Summary</h2>\n<div class=\"wide\">\n<table>\n<caption>Medians over {}. The \
         columns are explained <a href=\"#glossary\">below</a>.</caption>\n<thead>\n{}</thead>\n\
         <tbody>\n{}</tbody>\n</table>\n</div>\n</section>\n",
        words::counted(document.seeds, "seed"),
        headings(&summary.metrics),
        rows.concat()
    )
}

/// Two lines: groups, which span their columns, and the columns' own names.
fn headings(metrics: &[Metric]) -> String {
    let groups = metrics.chunk_by(|a, b| a.group == b.group).map(|group| {
        let scope = if group.len() == 1 { "col" } else { "colgroup" };
        format!("<th scope=\"{scope}\" colspan=\"{}\">{}</th>", group.len(), group[0].group)
    });
    let names = metrics.iter().map(|metric| format!("<th scope=\"col\">{}</th>", metric.name));
    format!(
        "<tr><th rowspan=\"2\" scope=\"col\">controller</th>{}</tr>\n<tr>{}</tr>\n",
        groups.collect::<Vec<_>>().concat(),
        names.collect::<Vec<_>>().concat()
    )
}

fn row(row: &Row) -> String {
    let class = if row.is_flow { " class=\"flow\"" } else { "" };
    let cell = |cell: &Option<String>| format!("<td>{}</td>", cell.as_deref().unwrap_or("–"));
    let cells: Vec<String> = row.cells.iter().map(cell).collect();
    format!("<tr{class}><th scope=\"row\">{}</th>{}</tr>\n", escape(&row.label), cells.concat())
}
