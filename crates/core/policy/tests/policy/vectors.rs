//! `conformance/assignments.tsv`: units and their assignments, which hold other implementations to this one.

use std::path::Path;

use uncork_policy::{Assignment, Fact, Facts, Policy};
use uncork_testkit::assert_snapshot;

use crate::common::policy;

const TEXT: &str = include_str!("../../../../../conformance/assignments.toml");

/// `EXPERIMENT ARM HASH SLOT BUCKET PROPENSITY`, or `-` for a unit that takes part in no experiment.
fn assigned(policy: &Policy, unit: &str) -> String {
    let (kind, value) = unit.split_once(' ').expect("KIND VALUE");
    let field = match kind {
        "cookie" => ("cookie", value),
        "header" => value.split_once('=').expect("NAME=VALUE"),
        _ => ("", ""),
    };
    let headers = [field];
    let client = Fact::known_or_absent(value.parse().ok().filter(|_| kind == "ip"));
    let facts = Facts { client, headers: Fact::Known(&headers), ..Facts::default() };
    match policy.decide(&facts.with_whole_request().with_whole_origin()).experiment {
        Some(Assignment { experiment, arm, unit, slot, bucket, propensity }) => {
            format!("{experiment} {arm} {unit} {slot} {bucket} {}", propensity.as_f64())
        }
        None => "-".to_owned(),
    }
}

#[test]
fn units_are_assigned_as_recorded() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../conformance/assignments.tsv");
    let recorded = std::fs::read_to_string(&file).expect("the vectors");
    let policy = policy(TEXT);
    let units = recorded.lines().filter_map(|line| line.split_once('\t'));
    let lines = units.map(|(unit, _)| format!("{unit}\t{}\n", assigned(&policy, unit)));
    assert_snapshot(&file, &lines.collect::<String>());
}
