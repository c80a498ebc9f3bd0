//! Values that replace those in the file.

use toml_edit::{Array, DocumentMut, Item, TableLike};
use uncork_config::{Entry, Key, Node, Place, Source, Value, toml_value};

use super::ScenarioError;
use super::keys;
use super::read::{Alternative, unknown_place};

/// An axis key and the names of its values before any replacement.
type Before = Vec<(String, Vec<String>)>;

/// Writes the values of `set` into `tree` and returns the text for this tree: `text` with its
/// comments and everything that is not replaced.
///
/// A value that is not valid TOML is a string. A key varied by the matrix then has only this value;
/// evaluations that refer to other values of that axis are removed.
pub(super) fn apply(
    tree: &mut Node,
    text: &str,
    set: &[(String, String)],
) -> Result<String, ScenarioError> {
    let axes_before = axes(tree);
    let mut document = match text.parse::<DocumentMut>() {
        Ok(document) if !set.is_empty() => document,
        _ => return Ok(text.to_owned()),
    };
    let mut before = Vec::new();
    for (index, (key, value)) in set.iter().enumerate() {
        let place = Place { source: Source::Set(index), span: 0..key.len() };
        let parts = dotted(key);
        if before.contains(&parts) {
            return Err(ScenarioError::new(&place, format!("`{key}` is set twice"))
                .help("give it once; --seeds sets run.seeds, and --seed run.first_seed"));
        }
        before.push(parts.clone());
        let node = Node::of_set(index, key, value);
        let item = toml_value(value).unwrap_or_else(|| toml_edit::value(value));
        let (keys, node, item) = locate(tree, key, parts, node, item, &place)?;
        tree.put(&keys, &place, node)?;
        write(document.as_table_mut(), &keys, item);
    }
    narrow(tree, &mut document, &axes_before);
    Ok(document.to_string())
}

/// Where a value is written and in which form: into the matrix, or at its own key.
fn locate(
    tree: &Node,
    key: &str,
    parts: Vec<String>,
    node: Node,
    item: Item,
    place: &Place,
) -> Result<(Vec<String>, Node, Item), ScenarioError> {
    if parts.first().is_some_and(|first| first == "matrix") {
        let axis = parts[1..].join(".");
        let is_axis = matches!(node.value, Value::List(_) | Value::Table(_));
        if axis.is_empty() || !(is_axis || Key::has(keys::MATRIX, &axis)) {
            let message = "an axis of the matrix is a place and a list of its values";
            return Err(ScenarioError::new(&node.place, message)
                .help("write matrix.\"path.loss\"=[\"0%\", \"1%\"]"));
        }
        return Ok((vec![parts[0].clone(), axis], node, item));
    }
    for entry in tree.get("matrix").map(Node::entries).unwrap_or_default() {
        let varied: Vec<Vec<String>> = entry.name.split(',').map(dotted).collect();
        let touched = |other: &Vec<String>| other.starts_with(&parts) || parts.starts_with(other);
        if varied.len() == 1 && varied[0] == parts {
            let list = Node { place: node.place.clone(), value: Value::List(vec![node]) };
            let values: Array = item.into_value().into_iter().collect();
            return Ok((vec!["matrix".into(), entry.name.clone()], list, toml_edit::value(values)));
        }
        if !parts.is_empty() && varied.iter().any(touched) {
            let message =
                format!("the matrix varies `{}`, so that `{key}` cannot be set", entry.name);
            return Err(ScenarioError::new(place, message)
                .help(format!("set matrix.\"{}\" to a list", entry.name)));
        }
    }
    keys::check(tree, &parts).map_err(|unknown| unknown_place(key, &parts, unknown, place))?;
    Ok((parts, node, item))
}

fn dotted(key: &str) -> Vec<String> {
    let parts = toml_edit::Key::parse(key.trim()).unwrap_or_default();
    parts.iter().map(|part| part.get().to_owned()).collect()
}

/// Writes `item` at `keys` of a document, keeping the old value's comment.
fn write(mut table: &mut dyn TableLike, keys: &[String], mut item: Item) {
    let Some((last, way)) = keys.split_last() else { return };
    for key in way {
        if !table.contains_key(key) {
            table.insert(key, toml_edit::table());
        }
        match table.get_mut(key).and_then(Item::as_table_like_mut) {
            Some(below) => table = below,
            None => return,
        }
    }
    if let Some(new) = item.as_value_mut() {
        let old = table.get(last).and_then(Item::as_value).map(|old| old.decor().clone());
        *new.decor_mut() = old.unwrap_or_default();
    }
    // `insert` would remove the comments before the key.
    match table.get_mut(last) {
        Some(place) => *place = item,
        None => {
            table.insert(last, item);
        }
    }
}

fn axes(tree: &Node) -> Before {
    let entries = tree.get("matrix").map(Node::entries).unwrap_or_default();
    let texts = |entry: &Entry| {
        let keys: Vec<Vec<String>> = entry.name.split(',').map(dotted).collect();
        let values = entry.node.list().unwrap_or_default().iter();
        let read = values.filter_map(|node| Alternative::read(node, &keys).ok());
        read.flat_map(|value| [value.label, value.written]).collect()
    };
    entries.iter().map(|entry| (entry.name.clone(), texts(entry))).collect()
}

/// Removes evaluations that refer to axis values that no longer exist.
fn narrow(tree: &mut Node, document: &mut DocumentMut, before: &Before) {
    let now = axes(tree);
    let gone = |axis: &str, label: &str| {
        let has = |axes: &Before| {
            axes.iter()
                .any(|(key, values)| key == axis && values.iter().any(|value| value == label))
        };
        has(before) && !has(&now)
    };
    for section in ["threshold", "figure", "published"] {
        let Some(Value::List(members)) = tree.get_mut(section).map(|node| &mut node.value) else {
            continue;
        };
        let lost: Vec<bool> = members.iter().map(|member| asks_for(member, &gone)).collect();
        let mut stays = lost.iter().map(|lost| !lost);
        members.retain(|_| stays.next().unwrap_or(true));
        for (index, _) in lost.iter().enumerate().rev().filter(|(_, lost)| **lost) {
            match document.get_mut(section) {
                Some(Item::ArrayOfTables(tables)) => {
                    tables.remove(index);
                }
                Some(Item::Value(toml_edit::Value::Array(array))) => {
                    array.remove(index);
                }
                _ => {}
            }
        }
    }
}

/// Whether `member` selects, or divides by, a removed value.
fn asks_for(member: &Node, gone: &impl Fn(&str, &str) -> bool) -> bool {
    let selections = ["where", "over"].into_iter().filter_map(|key| member.get(key));
    let selected = selections.flat_map(Node::entries);
    let mut pairs = selected.map(|entry| (entry.name.as_str(), entry.node.label()));
    let axis = member.get("x").map(Node::label).unwrap_or_default();
    let points = member.get("published").and_then(|node| node.list().ok()).unwrap_or_default();
    let x = |point: &Node| point.list().ok().and_then(|point| point.get(1)).map(Node::label);
    pairs.any(|(axis, label)| gone(axis, &label))
        || points.iter().filter_map(x).any(|label| gone(&axis, &label))
}
