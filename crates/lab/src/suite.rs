//! Suites: scenarios that belong together, and the one report about all of them.

use serde::Deserialize;
use uncork_report::lab::{LabDocument, LabEngine, SuiteDocument};

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

    /// The one of which `names` are all scenarios, in whatever order.
    pub fn of_members(names: &[&str]) -> Option<Self> {
        let has_all = |suite: &Self| {
            suite.members.len() == names.len()
                && suite.members.iter().all(|member| names.contains(&member.as_str()))
        };
        Self::all().find(has_all)
    }

    /// The document of those of its scenarios, which are in whatever order. `command` repeats all of
    /// them.
    pub fn report(&self, mut scenarios: Vec<LabDocument>, command: String) -> SuiteDocument {
        scenarios.sort_by_key(|one| self.members.iter().position(|member| *member == one.name));
        let engine = LabEngine {
            name: "sim".into(),
            packets: scenarios.iter().map(|one| one.engine.packets).sum(),
        };
        SuiteDocument {
            schema: SuiteDocument::SCHEMA.into(),
            version: env!("CARGO_PKG_VERSION").into(),
            name: self.name.to_owned(),
            title: self.title.clone(),
            about: self.about.clone(),
            command,
            suite: self.text.to_owned(),
            not_judged: self.not_judged.iter().map(NotJudged::sentence).collect(),
            scenarios,
            engine,
        }
    }
}

impl NotJudged {
    fn sentence(&self) -> String {
        format!("§{}: {}. {}", self.section, self.what, self.why)
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
    fn a_suite_is_known_by_all_of_its_scenarios() {
        let suite = rfc9743();
        let mut names: Vec<&str> = suite.members.iter().map(String::as_str).collect();
        names.sort_unstable();
        assert_eq!(Suite::of_members(&names).map(|suite| suite.name), Some("rfc9743"));
        assert!(Suite::of_members(&names[1..]).is_none());
        names[0] = "litespeed-loss";
        assert!(Suite::of_members(&names).is_none());
    }

    #[test]
    fn every_scenario_of_a_directory_is_in_a_list() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios");
        let files = std::fs::read_dir(directory).unwrap().count();
        assert_eq!(files, Builtin::all().len() + ALL.len());
    }
}
