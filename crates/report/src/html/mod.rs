//! One self-contained page: no script, nothing to load, right in print and in the dark.

mod figures;
mod glossary;
mod tables;

use crate::document::CompareDocument;
use crate::escape::escape;
use crate::number::{seconds, thousands};
use crate::series::ReportSeries;
use crate::{svg, words};

/// The comparison as one HTML file. It is well-formed XML too, holds no script and loads nothing.
pub fn compare_html(document: &CompareDocument, series: &ReportSeries) -> String {
    let labels: Vec<&str> = document.results.iter().map(|r| r.cc.as_str()).collect();
    let title = escape(&format!("uncork: {} compared", words::list(&labels)));
    let body = [
        header(document, &labels),
        verdict(document),
        tables::path(document),
        tables::summary(document),
        figures::all(document, series),
        glossary::section(document),
        json(document),
        footer(document),
    ];
    format!(
        "{}<title>{title}</title>\n<style>\n{}{}</style>\n</head>\n<body>\n<main>\n{}</main>\n\
         </body>\n</html>\n",
        HEAD,
        crate::page::STYLE,
        svg::style(),
        body.concat()
    )
}

const HEAD: &str = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
<meta http-equiv=\"Content-Security-Policy\" \
content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\"/>\n\
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
<meta name=\"color-scheme\" content=\"light dark\"/>\n";

fn header(document: &CompareDocument, labels: &[&str]) -> String {
    format!(
        "<header>\n<p class=\"kind\">uncork compare</p>\n<h1>{}</h1>\n<p class=\"question\">{}</p>\n\
         </header>\n",
        escape(&labels.join(" · ")),
        escape(&words::question(document))
    )
}

fn verdict(document: &CompareDocument) -> String {
    let paragraph = |line: &str| format!("<p>{}</p>\n", escape(line));
    let verdict = document.verdict.lines().map(paragraph);
    let unfinished = words::unfinished(document);
    let unfinished = unfinished.iter().map(|line| paragraph(line));
    let lines: Vec<String> = verdict.chain(unfinished).collect();
    if lines.is_empty() {
        return String::new();
    }
    format!("<section class=\"verdict\" aria-label=\"Verdict\">\n{}</section>\n", lines.concat())
}

fn json(document: &CompareDocument) -> String {
    format!(
        "<details>\n<summary>The same as JSON</summary>\n<pre>{}</pre>\n</details>\n",
        escape(&document.to_json())
    )
}

fn footer(document: &CompareDocument) -> String {
    let engine = &document.engine;
    format!(
        "<footer>\n<p>Made by uncork {}. {} packets simulated in {}, {} packets per second. Repeat \
         it with</p>\n<pre><code>{}</code></pre>\n</footer>\n",
        escape(&document.version),
        thousands(engine.packets),
        escape(&seconds(engine.wall_s)),
        thousands(engine.packets_per_s),
        escape(&document.command)
    )
}

#[cfg(test)]
mod tests;
