//! The built-in scenarios.

use crate::scenario::{Files, Scenario, ScenarioError};

/// A built-in scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Builtin {
    /// Its name on the command line.
    pub name: &'static str,
    /// The text of its file.
    pub text: &'static str,
}

/// A file in the directory `scenarios`, and its name without the extension.
macro_rules! builtin {
    ($name:literal) => {
        Builtin { name: $name, text: include_str!(concat!("../scenarios/", $name, ".toml")) }
    };
}

/// Names and files, sorted by name.
const ALL: [Builtin; 32] = [
    builtin!("bbr-cubic-share"),
    builtin!("bbr-loss-cliff"),
    builtin!("bbr-queue"),
    builtin!("bbr-shallow-buffer"),
    builtin!("bbr3-fairness"),
    builtin!("cdn-edge"),
    builtin!("datacenter-10g"),
    builtin!("kernel-agreement"),
    builtin!("kernel-mixes"),
    builtin!("litespeed-latency"),
    builtin!("litespeed-loss"),
    builtin!("rfc9743-aqm"),
    builtin!("rfc9743-bufferbloat"),
    builtin!("rfc9743-changes"),
    builtin!("rfc9743-circuit-breakers"),
    builtin!("rfc9743-coexistence"),
    builtin!("rfc9743-collapse"),
    builtin!("rfc9743-constrained"),
    builtin!("rfc9743-data-center"),
    builtin!("rfc9743-fairness"),
    builtin!("rfc9743-high-delay"),
    builtin!("rfc9743-loss"),
    builtin!("rfc9743-real-time"),
    builtin!("rfc9743-reordering"),
    builtin!("rfc9743-short-and-long"),
    builtin!("rfc9743-short-flows"),
    builtin!("rfc9743-varying-delay"),
    builtin!("rfc9743-wired"),
    builtin!("rfc9743-wireless"),
    builtin!("spotify-incident"),
    builtin!("spotify-streaming"),
    builtin!("starts"),
];

/// Built-in scenarios have no files next to them.
#[derive(Debug)]
pub struct NoFiles;

impl Files for NoFiles {
    fn read(&self, _: &str) -> Result<String, String> {
        Err("a built-in scenario has no other files".to_owned())
    }
}

impl Builtin {
    /// All built-in scenarios, sorted by name.
    pub fn all() -> &'static [Self] {
        &ALL
    }

    /// The built-in scenario of this name.
    pub fn find(name: &str) -> Option<&'static Self> {
        ALL.iter().find(|builtin| builtin.name == name)
    }

    /// The names closest to `name`, if any is close.
    pub fn near(name: &str) -> Vec<&'static str> {
        crate::column::nearest(&name.to_lowercase(), &ALL.map(|builtin| builtin.name))
    }

    /// Parses the scenario, with its values replaced by those of `set`.
    pub fn parse(&self, set: &[(String, String)]) -> Result<Scenario, ScenarioError> {
        Scenario::parse(self.name, self.text, set, &NoFiles)
    }
}

#[cfg(test)]
mod tests {
    use uncork_report::lab::Threshold;
    use uncork_terminal::{Style, Terminal};

    use super::*;

    #[test]
    fn every_scenario_is_valid_and_has_a_description() {
        assert!(ALL.is_sorted_by(|one, other| one.name < other.name));
        for builtin in Builtin::all() {
            let scenario = builtin.parse(&[]);
            let scenario = scenario.unwrap_or_else(|error| panic!("{}: {error}", builtin.name));
            assert_eq!(scenario.name, builtin.name);
            assert!(!scenario.title.is_empty() && !scenario.about.is_empty(), "{}", builtin.name);
            let asks = !scenario.published.is_empty() || !scenario.thresholds.is_empty();
            assert!(asks, "{}", builtin.name);
            let said = scenario.figures.iter().all(|figure| !figure.caption.is_empty());
            assert!(said, "{} has a figure without a caption", builtin.name);
        }
    }

    #[test]
    fn names_are_found_and_suggested() {
        assert_eq!(Builtin::find("litespeed-loss").map(|found| found.name), Some("litespeed-loss"));
        assert_eq!(Builtin::find("litespeed"), None);
        assert_eq!(Builtin::near("litespeed_los"), ["litespeed-loss"]);
        assert_eq!(Builtin::near("something else"), [""; 0]);
    }

    /// Its result document before any run: tables with names only.
    fn empty(builtin: &Builtin) -> uncork_report::lab::LabDocument {
        let scenario = builtin.parse(&[]).unwrap();
        let results = crate::SweepResults::new(Vec::new());
        results.document(&scenario, "uncork".into(), false)
    }

    #[test]
    fn no_two_rows_of_a_table_have_equal_labels() {
        for builtin in Builtin::all() {
            let document = empty(builtin);
            let terminal = Terminal { style: Style::Plain, width: 1000 };
            let text = document.text(terminal);
            let results = text.split_once(" from 1\n\n").unwrap().1;
            let results = results.split("\n\n").next().unwrap();
            let rows: Vec<&str> = results.lines().collect();
            let count: usize = document.cells.iter().map(|cell| cell.classes.len()).sum();
            assert_eq!(rows.len(), 1 + count, "{}:\n{results}", builtin.name);
            for (n, row) in rows.iter().enumerate() {
                assert!(!rows[..n].contains(row), "{}: twice {row:?}", builtin.name);
            }
        }
    }

    #[test]
    fn no_two_thresholds_have_equal_labels() {
        for builtin in Builtin::all() {
            let mut seen = std::collections::HashSet::new();
            for Threshold { text, class, cc, cell, .. } in empty(builtin).thresholds {
                let row = format!("{text} | {class} | {cc} | {cell}");
                assert!(seen.insert(row.clone()), "{}: twice {row}", builtin.name);
            }
        }
    }
}
