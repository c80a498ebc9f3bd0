//! Suites: groups of scenarios with a joint report.

use serde::Deserialize;
use uncork_report::lab::{LabDocument, LabEngine, SuiteDocument};

use crate::builtin::Builtin;

/// A list of scenarios that together answer one question.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    /// Its name on the command line.
    #[serde(skip)]
    pub name: &'static str,
    /// The text of its file.
    #[serde(skip)]
    pub text: &'static str,
    /// One-line title.
    pub title: String,
    /// Description, in paragraphs.
    pub about: String,
    /// Names of its scenarios in report order.
    #[serde(rename = "suite")]
    pub members: Vec<String>,
    /// Criteria that cannot be judged by running anything.
    #[serde(default)]
    pub not_judged: Vec<NotJudged>,
}

/// A criterion that no scenario can judge.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NotJudged {
    /// Its section.
    pub section: String,
    /// The criterion.
    pub what: String,
    /// The reason.
    pub why: String,
}

/// Names and files of the built-in suites.
const ALL: [(&str, &str); 1] = [("rfc9743", include_str!("../scenarios/rfc9743.suite.toml"))];

impl Suite {
    /// The built-in suites.
    pub fn all() -> impl Iterator<Item = Self> {
        ALL.iter().filter_map(Self::read)
    }

    /// The suite of this name.
    pub fn find(name: &str) -> Option<Self> {
        ALL.iter().find(|(known, _)| *known == name).and_then(Self::read)
    }

    /// A test parses all of them, so none is missing because of an error in its file.
    fn read((name, text): &(&'static str, &'static str)) -> Option<Self> {
        let suite = toml_edit::de::from_str(text).ok()?;
        Some(Self { name, text, ..suite })
    }

    /// Its scenarios.
    pub fn builtins(&self) -> impl Iterator<Item = &'static Builtin> {
        self.members.iter().filter_map(|name| Builtin::find(name))
    }

    /// The suite with exactly the scenarios `names`, in any order.
    pub fn of_members(names: &[&str]) -> Option<Self> {
        let has_all = |suite: &Self| {
            suite.members.len() == names.len()
                && suite.members.iter().all(|member| names.contains(&member.as_str()))
        };
        Self::all().find(has_all)
    }

    /// The joint document of its scenarios' documents, given in any order. `command` reproduces all
    /// of them.
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
    use uncork_path::Ecn;

    use super::*;

    #[test]
    fn every_suite_parses_and_its_scenarios_exist() {
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
    fn suite_lists_each_scenario_once() {
        let mut listed = rfc9743().members;
        listed.sort_unstable();
        let members = Builtin::all().iter().map(|builtin| builtin.name);
        let members: Vec<&str> = members.filter(|name| name.starts_with("rfc9743-")).collect();
        assert_eq!(listed, members);
    }

    #[test]
    fn suite_member_accepts_the_controller_under_test() {
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

    /// It needs ECT(1): without, it is CUBIC.
    #[test]
    fn suite_member_accepts_a_controller_for_l4s() {
        let set = [("cc", "prague"), ("ecn", "ect1")];
        let set = set.map(|(key, value)| (format!("flow.main.{key}"), value.to_owned()));
        for builtin in rfc9743().builtins() {
            let scenario = builtin.parse(&set);
            let scenario = scenario.unwrap_or_else(|error| panic!("{}: {error}", builtin.name));
            let flows = scenario.cells.iter().flat_map(|cell| &cell.plan.flows);
            let mut main = flows.filter(|plan| plan.name == "main");
            assert!(main.all(|plan| plan.ecn == Some(Ecn::Ect1)), "{}", builtin.name);
        }
    }

    #[test]
    fn suite_is_identified_by_all_of_its_scenarios() {
        let suite = rfc9743();
        let mut names: Vec<&str> = suite.members.iter().map(String::as_str).collect();
        names.sort_unstable();
        assert_eq!(Suite::of_members(&names).map(|suite| suite.name), Some("rfc9743"));
        assert!(Suite::of_members(&names[1..]).is_none());
        names[0] = "litespeed-loss";
        assert!(Suite::of_members(&names).is_none());
    }

    #[test]
    fn every_scenario_file_is_listed() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios");
        let files = std::fs::read_dir(directory).unwrap().count();
        assert_eq!(files, Builtin::all().len() + ALL.len());
    }
}
