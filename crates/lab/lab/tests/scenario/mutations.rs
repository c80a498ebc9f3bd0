//! Parsing any text ends with a scenario or with a displayable error.

use crate::common::{EXAMPLE, scenario_files};
use crate::texts::{assert_shown, replace};
use proptest::prelude::*;
use uncork_lab::{Builtin, Scenario};

/// Words with a meaning in scenarios, inserted in wrong places.
const WORDS: &[&str] = &[
    "\"",
    "[",
    "]",
    "{",
    "}",
    "=",
    "\n",
    ".",
    ",",
    "#",
    "0",
    "-1",
    "1e999",
    "nan",
    "true",
    "50ms",
    "\"50ms\"",
    "\"1bdp\"",
    "\"0p\"",
    "\"every:0\"",
    "\"100%\"",
    "[[threshold]]",
    "[path.a]",
    "[flow]",
    "quantiles",
    "own_per_flow = true\n",
    "\"bbr3\"",
    "9223372036854775807",
    "\u{fffd}",
    "ü",
    "lte = { mean = \"1mbit\" }\n",
    "trace = \"fcc-2016-1\"\n",
    "sizes = \"web\"",
    "[matrix]\n",
];

/// Parses `text`; displays the error if there is one.
fn read(text: &str, set: &[(String, String)]) -> Option<Scenario> {
    match Scenario::parse("any", text, set, &scenario_files()) {
        Ok(scenario) => Some(scenario),
        Err(error) => {
            assert_shown(&error);
            None
        }
    }
}

proptest! {
    // PROPTEST_CASES=100000 runs a long search.
    #![proptest_config(ProptestConfig::default())]

    #[test]
    fn mutated_scenarios_are_parsed_or_rejected(
        edits in proptest::collection::vec((0_usize..1500, 0_usize..30, 0..WORDS.len()), 1..4),
    ) {
        let mut text = EXAMPLE.to_owned();
        for (at, cut, word) in edits {
            replace(&mut text, at, cut, WORDS[word]);
        }
        if let Some(scenario) = read(&text, &[]) {
            for cell in 0..scenario.cells.len().min(3) {
                scenario.instance(cell, scenario.first_seed);
            }
        }
    }

    /// The same with the built-in files, which use every feature.
    #[test]
    fn mutated_stories_are_parsed_or_rejected(
        story in 0..Builtin::all().len(),
        edits in proptest::collection::vec((0.0_f64..1.0, 0_usize..30, 0..WORDS.len()), 1..4),
    ) {
        let mut text = Builtin::all()[story].text.to_owned();
        for (at, cut, word) in edits {
            let at = (text.len() as f64 * at) as usize;
            replace(&mut text, at, cut, WORDS[word]);
        }
        read(&text, &[]);
    }

    #[test]
    fn any_set_value_is_parsed_or_rejected(
        key in "(path|flow|run|matrix|title|flow\\.main|\"path)(\\.[a-z_\"]{0,8}){0,3}",
        value in "\\PC{0,12}",
    ) {
        let set = [(key, value)];
        if let Some(scenario) = read(EXAMPLE, &set) {
            let again = read(&scenario.text, &[]);
            prop_assert!(again.is_some(), "{:?}: {}", set, scenario.text);
        }
    }

    #[test]
    fn any_text_is_rejected(text in "\\PC{0,200}") {
        prop_assert!(read(&text, &[]).is_none());
    }
}
