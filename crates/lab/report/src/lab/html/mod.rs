//! One self-contained page: pictures that work without scripts, a script for zooming, and no
//! external resources.

mod caption;
mod drawing;
mod figures;
mod glossary;
mod numbers;
mod suite;
mod tables;
#[cfg(test)]
mod tests;
mod zoom;

use super::document::{LabDocument, LabEngine};
use super::verdict::{Verdict, verdicts};
use crate::escape::escape;
use crate::number::thousands;
use crate::{page, svg, words};
use figures::Figures;

impl LabDocument {
    /// The run as one HTML file without external resources. Everything is readable without scripts; the
    /// page's own script, the only one allowed by its content security policy, makes curves zoomable.
    /// The file is also well-formed XML. Its figures are limited to two megabytes; the page lists what
    /// is omitted because of that.
    pub fn html(&self) -> String {
        let mut figures = Figures::of(&[self]);
        let body = [
            header(&self.name, &self.title, &self.about),
            doubts(self),
            answers(self, ""),
            tables::thresholds(self, ""),
            setting(self),
            figures.section(self),
            tables::results(self),
            glossary::section(self),
            tables::published(self, ""),
            assumptions(self, ""),
            file("scenario", "The scenario as it was run (TOML)", &self.scenario),
            files(self),
            footer(&self.version, &self.engine, &self.command),
        ];
        page(&self.title, &body.concat())
    }
}

/// The whole page around `body`.
fn page(title: &str, body: &str) -> String {
    format!(
        "{}<title>{}</title>\n<style>\n{}{}{}{}{}</style>\n</head>\n<body>\n<main>\n{body}</main>\n{}\
         </body>\n</html>\n",
        head(),
        escape(&format!("uncork lab: {title}")),
        page::STYLE,
        include_str!("lab.css"),
        svg::style(),
        svg::heat_style(),
        page::UPLOT_STYLE,
        script(),
    )
}

/// The page's script as the browser sees it, including chart library and licence. The comments
/// around it make it valid text for XML parsers.
fn script() -> String {
    format!(
        "<script>/*<![CDATA[*/\n{}\n{}/*]]>*/</script>\n",
        page::UPLOT_SCRIPT.trim_end(),
        include_str!("lab.js"),
    )
}

/// SHA-256 of the text of [`script`] in base64: the page allows no other script. A browser test
/// reports the correct value when the script has changed.
const SCRIPT_HASH: &str = "sha256-J9wqdrCOPI/l/zcOu+79q+a0q8y7XVsY5K2lMRKnT10=";

fn head() -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'; script-src '{SCRIPT_HASH}'; img-src data:\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta name=\"color-scheme\" content=\"light dark\"/>\n"
    )
}

fn header(name: &str, title: &str, about: &str) -> String {
    format!(
        "<header>\n<p class=\"kind\">uncork lab · {}</p>\n<h1>{}</h1>\n{}</header>\n",
        escape(name),
        escape(title),
        paragraphs(about)
    )
}

/// Paragraphs of a text; one indented by four spaces is a command.
fn paragraphs(text: &str) -> String {
    let texts = text.split("\n\n").filter(|text| !text.trim().is_empty());
    let paragraph = |text: &str| match text.strip_prefix("    ") {
        Some(command) => {
            format!("<pre><code class=\"command\">{}</code></pre>\n", escape(command.trim_end()))
        }
        None => format!("<p class=\"question\">{}</p>\n", escape(text.trim())),
    };
    texts.map(paragraph).collect()
}

/// Reasons to distrust the results, at the top.
fn doubts(document: &LabDocument) -> String {
    let doubt = |doubt: &String| {
        format!("<p class=\"doubt\"><strong>Unreliable:</strong> {}</p>\n", escape(doubt))
    };
    document.doubts.iter().map(doubt).collect()
}

/// The answers of each class. Link names start with `prefix`.
fn answers(document: &LabDocument, prefix: &str) -> String {
    let verdicts = verdicts(document);
    let several = verdicts.len() > 1;
    let of_one = |verdict: &Verdict<'_>| {
        let heading =
            if several { format!("<h3>{}</h3>\n", escape(verdict.class)) } else { String::new() };
        let lines = verdict.lines.iter().map(|line| format!("<p>{}</p>\n", escape(line)));
        heading + &lines.collect::<String>()
    };
    let not_compared =
        document.not_compared.iter().map(|line| format!("<p>{}</p>\n", escape(line)));
    let answers: String = verdicts.iter().map(of_one).chain(not_compared).collect();
    if answers.is_empty() {
        return answers;
    }
    format!(
        "<section id=\"{}answers\" class=\"verdict\" aria-label=\"Answers\">\n{answers}</section>\n",
        escape(prefix)
    )
}

/// The matrix and the runs, as a list of terms.
fn setting(document: &LabDocument) -> String {
    let last = document.first_seed.saturating_add(document.seeds.saturating_sub(1));
    let runs = match document.seeds {
        1 => format!("seed {}", document.first_seed),
        n => format!("{n} seeds each, {} to {last}", document.first_seed),
    };
    let cells = words::counted(document.cells.len() as u64, "cell");
    let runs = [("Runs".to_owned(), format!("{cells}, {runs}"))].into_iter();
    let engine = [("Engine".to_owned(), document.engine.name.clone())];
    let entry = |(term, value): (String, String)| {
        format!("<div><dt>{}</dt><dd>{}</dd></div>\n", escape(&term), escape(&value))
    };
    let axes: String = document.axes.iter().map(axis).collect();
    let entries = axes + &runs.chain(engine).map(entry).collect::<String>();
    format!("<dl class=\"path\" aria-label=\"Matrix and runs\">\n{entries}</dl>\n")
}

/// An axis with its values, and with its keys if its name does not show them all.
fn axis(axis: &super::MatrixAxis) -> String {
    let keys = axis.key.split(',').map(str::trim).collect::<Vec<_>>().join(", ");
    let places = format!(" <small>{}</small>", escape(&keys));
    let places = if keys == axis.name { String::new() } else { places };
    // A value may contain a comma.
    let between = if axis.values.iter().any(|value| value.contains(',')) { "; " } else { ", " };
    format!(
        "<div><dt>{}{places}</dt><dd>{}</dd></div>\n",
        escape(&axis.name),
        escape(&axis.values.join(between))
    )
}

/// Assumptions, collapsed. Link names start with `prefix`.
fn assumptions(document: &LabDocument, prefix: &str) -> String {
    if document.assumptions.is_empty() {
        return String::new();
    }
    format!(
        "<details id=\"{}assumptions\">\n<summary>{}</summary>\n{}</details>\n",
        escape(prefix),
        words::counted(document.assumptions.len() as u64, "assumption"),
        list(&document.assumptions)
    )
}

fn list(texts: &[String]) -> String {
    let item = |text: &String| format!("<li>{}</li>\n", escape(text));
    format!("<ul>\n{}</ul>\n", texts.iter().map(item).collect::<String>())
}

/// A file's text, collapsed.
fn file(id: &str, what: &str, text: &str) -> String {
    format!(
        "<details id=\"{id}\">\n<summary>{what}</summary>\n<pre>{}</pre>\n</details>\n",
        escape(text)
    )
}

fn files(document: &LabDocument) -> String {
    if document.files.is_empty() {
        return String::new();
    }
    let entry = |file: &super::DataFile| {
        format!("<dt><code>{}</code></dt><dd>{}</dd>\n", escape(&file.name), escape(&file.holds))
    };
    let entries: String = document.files.iter().map(entry).collect();
    format!(
        "<section id=\"files\">\n<h2>Files next to this page</h2>\n<dl class=\"glossary\">\n\
         {entries}</dl>\n</section>\n"
    )
}

fn footer(version: &str, engine: &LabEngine, command: &str) -> String {
    format!(
        "<footer>\n<p>Made by uncork {} from {} packets. Repeat it with</p>\n<pre>\
         <code class=\"command\">{}</code></pre>\n</footer>\n",
        escape(version),
        thousands(engine.packets),
        escape(command)
    )
}
