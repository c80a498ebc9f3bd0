//! The page of a suite: a summary, then a section per scenario.

use super::figures::Figures;
use super::tables::{self, cards};
use super::{answers, assumptions, file, footer, header, list, page, paragraphs};
use crate::escape::escape;
use crate::lab::document::LabDocument;
use crate::lab::suite::{SuiteDocument, missed, score, who_missed};
use crate::number::thousands;
use crate::words;

impl SuiteDocument {
    /// The suite as one HTML file, like [`LabDocument::html`].
    pub fn html(&self) -> String {
        let scenarios: Vec<&LabDocument> = self.scenarios.iter().collect();
        let mut figures = Figures::of(&scenarios);
        let sections: String = scenarios.iter().map(|one| section(one, &mut figures)).collect();
        let body = [
            header(&self.name, &self.title, &self.about),
            summary(self),
            setting(self),
            sections,
            not_judged(self),
            file("suite", "The suite (TOML)", &self.suite),
            footer(&self.version, &self.engine, &self.command),
        ];
        page(&self.title, &body.concat())
    }
}

/// The scenarios and controllers that missed thresholds, with links to their sections.
fn summary(document: &SuiteDocument) -> String {
    let is_met = document.thresholds().all(|threshold| threshold.passed);
    let (class, sign) = if is_met { ("passed", "✓") } else { ("failed", "✗") };
    let rows: String = document.scenarios.iter().map(summary_row).collect();
    let table = cards(&format!(
        "<caption class=\"aside\">Scenarios</caption>\n<thead>\n<tr><th scope=\"col\">scenario</th>\
         <th scope=\"col\" class=\"l\">thresholds</th><th scope=\"col\" class=\"l\">missed by</th>\
         </tr>\n</thead>\n<tbody>\n{rows}</tbody>\n"
    ));
    format!(
        "<section id=\"summary\" class=\"verdict {class}\" aria-label=\"Summary\">\n\
         <p class=\"count\"><span aria-hidden=\"true\">{sign}</span> {}</p>\n{table}</section>\n",
        escape(&document.verdict())
    )
}

fn summary_row(scenario: &LabDocument) -> String {
    let (class, sign) = match (missed(scenario).is_empty(), scenario.thresholds.is_empty()) {
        (_, true) => ("soft", ""),
        (true, _) => ("yes", "✓ "),
        (false, _) => ("no", "✗ "),
    };
    format!(
        "<tr><th scope=\"row\" class=\"broad\"><a href=\"#{}\">{}</a></th><td class=\"l {class} broad\">{sign}{}</td>\
         <td class=\"l broad\">{}</td></tr>\n",
        escape(&scenario.name),
        escape(&scenario.title),
        escape(&score(scenario)),
        escape(&who_missed(scenario))
    )
}

fn setting(document: &SuiteDocument) -> String {
    let scenarios = words::counted(document.scenarios.len() as u64, "scenario");
    let runs = format!("{} in {scenarios}", thousands(document.runs()));
    let entries = [("Runs", runs), ("Engine", document.engine.name.clone())];
    let entry = |(term, value): &(&str, String)| {
        format!("<div><dt>{term}</dt><dd>{}</dd></div>\n", escape(value))
    };
    let entries: String = entries.iter().map(entry).collect();
    format!("<dl class=\"path\" aria-label=\"Runs\">\n{entries}</dl>\n")
}

/// A scenario's question, findings and figures. Results and scenario text are in its own report.
fn section(scenario: &LabDocument, figures: &mut Figures) -> String {
    let prefix = format!("{}-", scenario.name);
    let report = match scenario.files.as_slice() {
        [] => String::new(),
        _ => format!(
            " · <a href=\"{0}/report.html\">tables of results, and the scenario</a>",
            escape(&scenario.name)
        ),
    };
    let body = [
        paragraphs(&scenario.about),
        answers(scenario, &prefix),
        tables::thresholds(scenario, &prefix),
        tables::published(scenario, &prefix),
        figures.all(scenario),
        assumptions(scenario, &prefix),
    ];
    format!(
        "<section id=\"{}\" class=\"member\">\n<h2>{}</h2>\n<p class=\"kind\">{}{report} · \
         <a href=\"#summary\">summary</a></p>\n{}</section>\n",
        escape(&scenario.name),
        escape(&scenario.title),
        escape(&scenario.name),
        body.concat()
    )
}

fn not_judged(document: &SuiteDocument) -> String {
    if document.not_judged.is_empty() {
        return String::new();
    }
    let list = list(&document.not_judged);
    format!("<section id=\"not-judged\">\n<h2>Not judged</h2>\n{list}</section>\n")
}
