//! The page: a section per scenario with a table of published results.

use std::path::PathBuf;

use uncork_lab::Published;
use uncork_report::lab::{self, LabDocument, Verdict};

/// What to do if the page is out of date.
pub(crate) const REMEDY: &str = "UPDATE_DOCS=1 cargo test --release -p uncork-lab --test stories writes docs/evidence/stories.md";

const TITLE: &str = "# What others published, and what is measured here\n";

const INTRODUCTION: &str = "\
Most ranges are chosen, because publications seldom give their uncertainty.

`UPDATE_DOCS=1 cargo test --release -p uncork-lab --test stories` measures everything and writes this page, in some
minutes. Each section repeats a published experiment; `uncork lab show NAME` prints its scenario with the assumptions.
Each row is one figure:

| column | meaning |
| --- | --- |
| published | the value, and where it comes from |
| agrees if | the range, and where it comes from. Empty: the publication does not say enough to judge |
| here | the value measured here, with its 95 % interval |
| verdict | *agrees*: the whole interval is in the range. *Differs*: it is outside. *Open*: it is partly in the range, or the interval is missing |
| comment | why values differ, or that the reason is not known |

A verdict can turn: `cargo test -p uncork-lab --lib wrong_controllers` uses CUBIC instead of BBR, and BBR with a window of
1.5 BDP instead of 2.
";

const HEADER: [&str; 6] = ["figure", "published", "agrees if", "here", "verdict", "comment"];

/// Whether to update the page instead of comparing it: `UPDATE_DOCS=1`.
pub(crate) fn is_update() -> bool {
    std::env::var_os("UPDATE_DOCS").is_some()
}

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../docs/evidence/stories.md")
}

pub(crate) fn read() -> String {
    std::fs::read_to_string(path()).expect(REMEDY)
}

pub(crate) fn write(sections: &str) {
    let page = format!("{}{sections}", beginning(sections));
    std::fs::write(path(), page).expect("the page can be written");
}

/// What is before `sections`: the title, the conclusion and how to read them.
pub(crate) fn beginning(sections: &str) -> String {
    let [agree, differ, open] = [Verdict::Agrees, Verdict::Differs, Verdict::Open]
        .map(|verdict| sections.matches(&format!(" | {} | ", word(verdict))).count());
    let figures = agree + differ + open;
    format!(
        "{TITLE}\nOf {figures} published figures with a range {agree} agree, {differ} differ and {open} are open. {INTRODUCTION}"
    )
}

/// The section of a scenario.
pub(crate) fn section(document: &LabDocument) -> String {
    let LabDocument { name, title, command, seeds, .. } = document;
    let runs = document.cells.len() as u64 * seeds;
    let rule = HEADER.map(|_| "---".to_owned());
    let rows = document.published.iter().map(row);
    let lines = [HEADER.map(str::to_owned), rule].into_iter().chain(rows).map(|row| line(&row));
    let table = lines.collect::<Vec<_>>().join("\n");
    format!("\n## {name}\n\n{title}. `{command}`: {runs} runs.\n\n{table}\n")
}

fn row(published: &lab::Published) -> [String; 6] {
    let lab::Published { what, published, measured, judgement, source, note } = published;
    let (range, verdict) = match judgement {
        Some(judgement) => {
            (with_source(&judgement.range, &judgement.range_from), word(judgement.verdict))
        }
        None => (String::new(), ""),
    };
    [what, &with_source(published, source), &range, measured, verdict, note].map(plain)
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Agrees => "agrees",
        Verdict::Differs => "**differs**",
        Verdict::Open => "open",
    }
}

/// The parts of a row from the scenario's file: name, published value and comment.
pub(crate) fn published_texts(published: &Published) -> [String; 3] {
    let Published { what, value, source, note, .. } = published;
    [what, &with_source(value, source), note].map(|cell| plain(cell))
}

fn with_source(value: &str, source: &str) -> String {
    format!("{value} ({source})")
}

/// Escapes text for a table cell.
fn plain(cell: &str) -> String {
    cell.replace('|', "\\|").replace('\n', " ")
}

fn line(cells: &[String; 6]) -> String {
    format!("| {} |", cells.join(" | "))
}

/// The names of the scenarios, in the order of the page.
pub(crate) fn names(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| line.strip_prefix("## "))
}

/// The section of `name`, with the empty line before it.
pub(crate) fn section_of<'a>(text: &'a str, name: &str) -> &'a str {
    let heading = format!("\n## {name}\n");
    let start = text.find(&heading).unwrap_or_else(|| panic!("no section {name}: {REMEDY}"));
    let after = start + heading.len();
    let end = text[after..].find("\n## ").map_or(text.len(), |length| after + length);
    &text[start..end]
}

/// The rows of a section's table, without its header.
pub(crate) fn rows(section: &str) -> Vec<Vec<&str>> {
    let lines = section.lines().filter(|line| line.starts_with('|')).skip(2);
    lines.map(|line| line[2..line.len() - 2].split(" | ").collect()).collect()
}
