//! The blocks of the reference are policies.

use uncork_policy::Policy;

use crate::common::policy;

const REFERENCE: &str = include_str!("../../../../../docs/reference/policy.md");

fn blocks() -> impl Iterator<Item = &'static str> {
    REFERENCE.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next())
}

#[test]
fn every_block_of_the_reference_parses() {
    assert!(blocks().count() >= 6);
    for block in blocks() {
        let policy: Policy = policy(block);
        assert!(policy.rules() > 0, "{block}");
    }
}

#[test]
fn first_block_is_the_three_line_rule() {
    assert_eq!(blocks().next().map(|block| block.lines().count()), Some(3));
}
