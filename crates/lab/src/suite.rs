//! Suites: scenarios that belong together, and the one report about all of them.

use std::fmt::Write as _;

use serde::Deserialize;
use uncork_report::Align;
use uncork_report::lab::{
    DataFile, Figure, FigureTable, LabDocument, LabEngine, Plot, Provenance, Published,
    TableColumn, Threshold, quantity,
};

use crate::builtin::Builtin;

/// A list of scenarios that answer one question together.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    /// Its name on the command line.
    #[serde(skip)]
    pub name: &'static str,
    /// Its file.
    #[serde(skip)]
    pub text: &'static str,
    /// One line.
    pub title: String,
    /// What it is about, in paragraphs.
    pub about: String,
    /// Names of its scenarios, in the order of the report.
    #[serde(rename = "suite")]
    pub members: Vec<String>,
    /// What is asked and cannot be judged by running anything.
    #[serde(default)]
    pub not_judged: Vec<NotJudged>,
}

/// A criterion that no scenario can judge.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NotJudged {
    /// Where it stands.
    pub section: String,
    /// What it asks.
    pub what: String,
    /// Why it is not judged.
    pub why: String,
}

/// Names and files of the suites that are part of the program.
const ALL: [(&str, &str); 1] = [("rfc9743", include_str!("../scenarios/rfc9743.suite.toml"))];

impl Suite {
    /// The suites that are part of the program.
    pub fn all() -> impl Iterator<Item = Self> {
        ALL.iter().filter_map(Self::read)
    }

    /// The one of this name.
    pub fn find(name: &str) -> Option<Self> {
        ALL.iter().find(|(known, _)| *known == name).and_then(Self::read)
    }

    /// A test reads all of them, so that none is missing for a slip in its file.
    fn read((name, text): &(&'static str, &'static str)) -> Option<Self> {
        let suite = toml_edit::de::from_str(text).ok()?;
        Some(Self { name, text, ..suite })
    }

    /// Its scenarios.
    pub fn builtins(&self) -> impl Iterator<Item = &'static Builtin> {
        self.members.iter().filter_map(|name| Builtin::find(name))
    }

    /// One document of those of its scenarios: a section for each, with its bounds and its figures.
    /// `command` repeats all of them.
    pub fn report(&self, documents: &[LabDocument], command: String) -> LabDocument {
        let of_all =
            |engine: fn(&LabEngine) -> f64| documents.iter().map(|one| engine(&one.engine)).sum();
        let first = documents.first();
        LabDocument {
            schema: LabDocument::SCHEMA.into(),
            version: env!("CARGO_PKG_VERSION").into(),
            name: self.name.to_owned(),
            title: self.title.clone(),
            about: self.about.clone(),
            first_seed: first.map_or(0, |one| one.first_seed),
            seeds: documents.iter().map(|one| one.seeds).max().unwrap_or(0),
            scenario: self.text.to_owned(),
            intervals: first.map_or_else(String::new, |one| one.intervals.clone()),
            thresholds: documents.iter().flat_map(thresholds).collect(),
            axes: Vec::new(),
            cells: Vec::new(),
            published: documents.iter().flat_map(published).collect(),
            assumptions: self.not_judged.iter().map(NotJudged::sentence).collect(),
            figures: documents.iter().flat_map(|one| section(one, &command)).collect(),
            files: documents.iter().map(own_report).collect(),
            command,
            engine: LabEngine {
                name: "sim".into(),
                packets: documents.iter().map(|one| one.engine.packets).sum(),
                cpu_s: of_all(|engine| engine.cpu_s),
                wall_s: of_all(|engine| engine.wall_s),
                threads: documents.iter().map(|one| one.engine.threads).max().unwrap_or(0),
            },
        }
    }
}

impl NotJudged {
    fn sentence(&self) -> String {
        format!("Not judged: §{}, {}. {}", self.section, self.what, self.why)
    }
}

fn thresholds(document: &LabDocument) -> impl Iterator<Item = Threshold> {
    let title = |text: &str| format!("{}: {text}", document.title);
    document.thresholds.iter().map(move |one| Threshold { text: title(&one.text), ..one.clone() })
}

fn published(document: &LabDocument) -> impl Iterator<Item = Published> {
    let title = |what: &str| format!("{}: {what}", document.title);
    document.published.iter().map(move |one| Published { what: title(&one.what), ..one.clone() })
}

fn own_report(document: &LabDocument) -> DataFile {
    DataFile { name: format!("{}/report.html", document.name), holds: document.title.clone() }
}

/// What a scenario asks and found, then its figures.
fn section(document: &LabDocument, command: &str) -> Vec<Figure> {
    let provenance = Provenance {
        first_seed: document.first_seed,
        seeds: document.seeds,
        command: command.to_owned(),
    };
    let mut caption = document.about.trim().to_owned();
    for assumption in &document.assumptions {
        // Writing to a string cannot fail.
        let _ = write!(caption, " {assumption}");
    }
    let bounds = Figure {
        id: document.name.clone(),
        title: document.title.clone(),
        caption,
        provenance,
        plot: Plot::Table(bounds(document)),
    };
    let figures = document.figures.iter().map(|figure| Figure {
        id: format!("{}-{}", document.name, figure.id),
        title: format!("{}: {}", document.title, figure.title),
        ..figure.clone()
    });
    std::iter::once(bounds).chain(figures).collect()
}

fn bounds(document: &LabDocument) -> FigureTable {
    let column =
        |label: &str, align| TableColumn { label: label.into(), unit: String::new(), align };
    let row = |one: &Threshold| {
        let measured = one.measured.map_or("nothing".into(), |value| quantity(value, &one.unit));
        let verdict = if one.passed { "met" } else { "missed" };
        vec![
            one.text.clone(),
            one.cell.clone(),
            measured,
            quantity(one.bound, &one.unit),
            verdict.into(),
        ]
    };
    FigureTable {
        columns: vec![
            column("bound", Align::Left),
            column("where", Align::Left),
            column("measured", Align::Right),
            column("held against", Align::Right),
            column("", Align::Left),
        ],
        rows: document.thresholds.iter().map(row).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_suite_reads_and_its_scenarios_are_there() {
        assert_eq!(Suite::all().count(), ALL.len());
        for suite in Suite::all() {
            assert_eq!(suite.builtins().count(), suite.members.len(), "{}", suite.name);
            assert!(Builtin::find(suite.name).is_none(), "{}", suite.name);
        }
    }

    fn rfc9743() -> Suite {
        Suite::find("rfc9743").unwrap()
    }

    #[test]
    fn the_suite_lists_each_of_its_scenarios_once() {
        let mut listed = rfc9743().members;
        listed.sort_unstable();
        let members = Builtin::all().iter().map(|builtin| builtin.name);
        let members: Vec<&str> = members.filter(|name| name.starts_with("rfc9743-")).collect();
        assert_eq!(listed, members);
    }

    #[test]
    fn a_member_of_the_suite_takes_the_controller_under_test() {
        let set = [("flow.main.cc".to_owned(), "reno".to_owned())];
        for builtin in rfc9743().builtins() {
            let scenario = builtin.parse(&set);
            let scenario = scenario.unwrap_or_else(|error| panic!("{}: {error}", builtin.name));
            let main = |cell: &crate::scenario::Cell| {
                let classes = cell.classes.iter().filter(|class| class.name == "main");
                classes.flat_map(|class| class.ccs.clone()).collect::<Vec<_>>()
            };
            assert!(scenario.cells.iter().all(|cell| main(cell) == ["reno"]), "{}", builtin.name);
            assert!(!scenario.thresholds.is_empty(), "{}", builtin.name);
        }
    }

    #[test]
    fn every_scenario_of_a_directory_is_in_a_list() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios");
        let files = std::fs::read_dir(directory).unwrap().count();
        assert_eq!(files, Builtin::all().len() + ALL.len());
    }
}
