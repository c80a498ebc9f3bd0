//! Parsing of policies.

mod condition;
pub(crate) mod experiment;
pub(crate) mod keys;
mod rule;
mod settings;
mod table;
mod time;

use uncork_config::{ConfigError, Node, Result, Section};

use self::settings::Defaults;
use crate::policy::{Policy, When, fingerprint};

/// Values of `decide`.
const WHEN: [(&str, When); 2] = [("once", When::Once), ("each_request", When::EachRequest)];

/// Parses the policy `name` from `text`.
pub(crate) fn policy(name: &str, text: &str) -> Result<Policy> {
    let tree = Node::of_text(text)?;
    let whole = tree.place.clone();
    let file = Section::new("a policy", &whole, &tree, keys::FILE)?;
    let key = file.read("key", key)?.unwrap_or_default();
    let mut defaults = Defaults::new(file.read("max_initial_window", Node::parse)?);
    let default = file.read("default", |node| {
        settings::settings("[default]", file.key_place("default"), node, &defaults)
    })?;
    defaults.settings = default.unwrap_or_default();
    let experiments = experiment::experiments(&file, key, &defaults)?;
    let mut table = table::table(&file, &defaults)?;
    let rules = rule::rules(&tree, text, &experiments, &mut table, &defaults)?;
    Ok(Policy {
        name: name.into(),
        fingerprint: fingerprint(text),
        when: file.read("decide", |node| node.choice("time to decide", &WHEN))?.unwrap_or_default(),
        default: defaults.settings,
        experiments: experiments.into(),
        table,
        rules: rules.into(),
        release: None,
    })
}

/// The hash key: 16 bytes in hexadecimal digits.
fn key(node: &Node) -> Result<[u8; 16]> {
    let text = node.text()?;
    let number = u128::from_str_radix(text, 16).ok();
    let number = number.filter(|_| text.len() == 32 && !text.starts_with('+'));
    number.map(u128::to_be_bytes).ok_or_else(|| {
        ConfigError::new(&node.place, "a key needs 32 hexadecimal digits")
            .help("make one with `openssl rand -hex 16`")
    })
}

/// The members of a list, or a single value.
fn members(node: &Node) -> Result<&[Node]> {
    let Ok(list) = node.list() else { return Ok(std::slice::from_ref(node)) };
    if list.is_empty() {
        return Err(ConfigError::new(&node.place, "an empty list never matches")
            .help("leave it out, or give at least one"));
    }
    Ok(list)
}
