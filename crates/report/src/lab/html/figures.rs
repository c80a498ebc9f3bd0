//! Figures with all that belongs to them: heading, picture, caption, numbers, origin.

use super::drawing::{self, Drawing};
use super::numbers;
use crate::escape::escape;
use crate::lab::document::LabDocument;
use crate::lab::figure::{Figure, Provenance};
use crate::lab::inks::Inks;

/// Bytes that all figures together may take.
pub(super) const PAGE_LIMIT: usize = 2_000_000;

/// All figures of the document. Beyond the page's limit they lose, one by one, first what makes them
/// zoomable and then their pictures; heading, caption and origin stay.
pub(super) fn all(document: &LabDocument) -> String {
    if document.figures.is_empty() {
        return String::new();
    }
    let inks = Inks::of(document);
    let curves = document.figures.iter().map(|figure| drawing::curves(&figure.plot));
    let budget = drawing::zoom_budget(curves.sum());
    let mut section = contents(document);
    for (n, figure) in document.figures.iter().enumerate() {
        let mut drawing = drawing::draw(figure, &inks, budget);
        if section.len() + drawing.size() > PAGE_LIMIT {
            drawing.zoom = None;
        }
        let left_out = section.len() + drawing.size() > PAGE_LIMIT;
        let drawing = (!left_out).then_some(drawing);
        section.push_str(&render(document, n, figure, drawing.as_ref()));
    }
    format!("<section id=\"figures\">\n<h2>Figures</h2>\n{section}</section>\n")
}

/// Links to the figures, where there are enough to get lost.
fn contents(document: &LabDocument) -> String {
    if document.figures.len() < 4 {
        return String::new();
    }
    let link = |(n, figure): (usize, &Figure)| {
        format!("<li><a href=\"#figure-{}\">{}</a></li>\n", n + 1, escape(&figure.title))
    };
    let links: String = document.figures.iter().enumerate().map(link).collect();
    format!("<nav aria-label=\"Figures\">\n<ol class=\"contents\">\n{links}</ol>\n</nav>\n")
}

/// Figures are numbered in links: names are the scenario's, and markup allows them less.
fn render(document: &LabDocument, n: usize, figure: &Figure, drawing: Option<&Drawing>) -> String {
    let number = n + 1;
    let picture = match drawing {
        Some(drawing) => picture(drawing),
        None => {
            "<p class=\"left-out\">Left out, to keep this page small: its data are in the result \
                 document.</p>\n"
                .to_owned()
        }
    };
    let thinned = drawing.map(|drawing| drawing.note.as_str()).filter(|note| !note.is_empty());
    let thinned = thinned.map(|note| format!(" {}", escape(note))).unwrap_or_default();
    let numbers = drawing.map(|_| numbers::of(figure)).unwrap_or_default();
    format!(
        "<figure id=\"figure-{number}\" data-id=\"{}\">\n<h3>{}</h3>\n{picture}<figcaption>\
         <b>Figure {number}.</b> {}{thinned}{}</figcaption>\n{numbers}</figure>\n",
        escape(&figure.id),
        escape(&figure.title),
        escape(&figure.caption),
        source(document, &figure.provenance)
    )
}

fn picture(drawing: &Drawing) -> String {
    let zoom = drawing.zoom.as_ref().map(|data| {
        format!("<script type=\"application/json\" class=\"curves\">{data}</script>\n")
    });
    format!("<div class=\"picture\">\n{}</div>\n{}", drawing.picture, zoom.unwrap_or_default())
}

fn source(document: &LabDocument, provenance: &Provenance) -> String {
    let first = provenance.first_seed;
    let seeds = match provenance.seeds {
        1 => format!("Seed {first}"),
        n => format!("Seeds {first} to {}", first.saturating_add(n.saturating_sub(1))),
    };
    format!(
        " <span class=\"source\">{seeds}, uncork {}. Repeat with: <code class=\"command\">{}</code>\
         </span>",
        escape(&document.version),
        escape(&provenance.command)
    )
}
