//! Paths that start from a preset.

use uncork_config::{Entry, Node, Result, Value};

use super::super::ScenarioError;
use crate::preset::{Preset, PresetValue};

/// A link has exactly one of these keys.
const RATES: [&str; 3] = ["rate", "trace", "lte"];

/// A path's table including the values of its preset, and their sources.
pub(crate) struct Filled {
    pub(crate) node: Node,
    /// Value and source of each preset value that is used.
    pub(crate) sources: Vec<String>,
}

/// The table at `node`, called `name` in messages, completed by its `preset`. Its own keys override
/// the preset's.
pub(crate) fn filled(name: &str, node: &Node) -> Result<Filled> {
    let mut filled = Filled { node: node.clone(), sources: Vec::new() };
    let Some(given) = node.get("preset") else { return Ok(filled) };
    let preset = find(given)?;
    for value in preset.values {
        let PresetValue { key, source, .. } = value;
        let node = value.node(&given.place);
        if is_overridden(&filled.node, key, &node) {
            continue;
        }
        add(&mut filled.node, key, &node);
        let value = filled.node.get(key).map(Node::label).unwrap_or_default();
        filled.sources.push(preset.assumption(name, key, &value, source));
    }
    Ok(filled)
}

fn find(given: &Node) -> Result<Preset> {
    let name = given.text()?;
    Preset::find(name).ok_or_else(|| {
        let presets = Preset::all();
        ScenarioError::new(&given.place, format!("unknown preset `{name}`"))
            .nearest(name, presets.iter().map(|preset| preset.name))
            .note("`uncork lab presets` lists the presets")
    })
}

/// Whether `table` overrides the preset's `node` at `key`. Two tables are merged instead.
fn is_overridden(table: &Node, key: &str, node: &Node) -> bool {
    let is_table = |node: &Node| matches!(node.value, Value::Table(_));
    match table.get(key) {
        Some(own) => !(is_table(own) && is_table(node)),
        None => RATES.contains(&key) && RATES.iter().any(|rate| table.get(rate).is_some()),
    }
}

/// Inserts `node` at `key` of `table`. If there is already a table, only its missing keys are added.
fn add(table: &mut Node, key: &str, node: &Node) {
    if let Some(own) = table.get_mut(key) {
        for entry in node.entries() {
            if !is_overridden(own, &entry.name, &entry.node) {
                add(own, &entry.name, &entry.node);
            }
        }
    } else if let Value::Table(entries) = &mut table.value {
        let (name, place) = (key.to_owned(), node.place.clone());
        entries.push(Entry { name, node: node.clone(), place });
    }
}
