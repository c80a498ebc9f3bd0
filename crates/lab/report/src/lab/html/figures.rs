//! Figures with heading, picture, caption, numbers and provenance.

use super::drawing::{self, Drawing};
use super::{caption, numbers};
use crate::escape::escape;
use crate::lab::document::LabDocument;
use crate::lab::figure::{Figure, Provenance};
use crate::lab::inks::Inks;

/// Maximum size of all figures in bytes.
pub(super) const PAGE_LIMIT: usize = 2_000_000;

/// The figures of a page: numbered consecutively, with one colour per controller, within the page's
/// size limit. Beyond the limit they lose first their zoom data and then their pictures, one by
/// one; heading, caption and provenance remain.
pub(super) struct Figures {
    inks: Inks,
    /// Maximum points of a curve for zooming.
    budget: usize,
    /// Number of figures so far.
    count: usize,
    /// Bytes so far.
    size: usize,
}

impl Figures {
    /// The figures of all `documents` that share a page.
    pub(super) fn of(documents: &[&LabDocument]) -> Self {
        let figures = documents.iter().flat_map(|document| &document.figures);
        let curves = figures.map(|figure| drawing::curves(&figure.plot)).sum();
        let budget = drawing::zoom_budget(curves);
        Self { inks: Inks::of(documents), budget, count: 0, size: 0 }
    }

    /// The figures of `document` in a section with a heading.
    pub(super) fn section(&mut self, document: &LabDocument) -> String {
        if document.figures.is_empty() {
            return String::new();
        }
        let figures = self.all(document);
        format!("<section id=\"figures\">\n<h2>Figures</h2>\n{figures}</section>\n")
    }

    /// The figures of `document`.
    pub(super) fn all(&mut self, document: &LabDocument) -> String {
        let mut out = contents(document, self.count + 1);
        for figure in &document.figures {
            let mut drawing = drawing::draw(figure, &self.inks, self.budget);
            if self.size + drawing.size() > PAGE_LIMIT {
                drawing.zoom = None;
            }
            let left_out = self.size + drawing.size() > PAGE_LIMIT;
            let drawing = (!left_out).then_some(drawing);
            self.count += 1;
            let rendered = render(document, self.count, figure, drawing.as_ref());
            self.size += rendered.len();
            out.push_str(&rendered);
        }
        out
    }
}

/// Links to the figures from `first` on, if there are many.
fn contents(document: &LabDocument, first: usize) -> String {
    if document.figures.len() < 4 {
        return String::new();
    }
    let link = |(n, figure): (usize, &Figure)| {
        format!("<li><a href=\"#figure-{n}\">{}</a></li>\n", escape(&figure.title))
    };
    let links: String = (first..).zip(&document.figures).map(link).collect();
    format!(
        "<nav aria-label=\"Figures\">\n<ol class=\"contents\" start=\"{first}\">\n{links}</ol>\n\
         </nav>\n"
    )
}

/// Links use figure numbers, because scenario names may contain characters not allowed in markup.
fn render(
    document: &LabDocument,
    number: usize,
    figure: &Figure,
    drawing: Option<&Drawing>,
) -> String {
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
        escape(&caption::of(figure)),
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
