//! The examples in the format reference are valid.

use crate::common::scenario;

const REFERENCE: &str = include_str!("../../../../../docs/reference/scenario.md");

/// The fenced blocks of the reference with the language `kind`.
fn blocks(kind: &str) -> Vec<&'static str> {
    let fenced = REFERENCE.split("```").skip(1).step_by(2);
    fenced.filter_map(|block| block.strip_prefix(kind)?.strip_prefix('\n')).collect()
}

/// `fragment` with the lines it lacks to be a complete scenario.
fn completed(fragment: &str) -> String {
    let mut text = String::new();
    let has = |table: &str| fragment.lines().any(|line| line.starts_with(table));
    if !has("[path") {
        text += "[path]\nrate = \"20mbit\"\nrtt = \"50ms\"\nloss = \"1%\"\n";
    }
    if !has("[flow") {
        text += "[flow.main]\ncc = \"bbr3\"\ntransfer = \"1MB\"\n";
    }
    if !has("[matrix") && (has("[[figure") || has("[[threshold") || has("[[published")) {
        text += "[matrix]\n\"path.loss\" = [\"0%\", \"1%\"]\n\
                 \"path.rtt\" = [\"20ms\", \"50ms\"]\n\
                 \"flow.main.cc\" = [\"cubic\", \"bbr3\"]\n";
    }
    // Top-level keys must precede tables.
    format!("{fragment}\n{text}")
}

#[test]
fn every_example_parses() {
    let examples = blocks("toml");
    assert!(examples.len() >= 9, "{}", examples.len());
    for example in examples {
        let scenario = scenario(&completed(example), &[]);
        assert!(!scenario.instance(0, scenario.first_seed).run.flows.is_empty(), "{example}");
    }
}
