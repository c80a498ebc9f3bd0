//! The values of an axis: their names and the keys they set.

use uncork_config::{Key, Node, Place, Result, Section, Value};

use super::super::ScenarioError;
use super::super::keys;
use super::super::model::Axis;

/// Syntax of a named value, for messages.
const NAMED: &str = "{ name = \"…\", values = […] }";

/// A value of an axis.
pub(crate) struct Alternative {
    /// Its name.
    pub(crate) label: String,
    /// The values as written in the file.
    pub(crate) written: String,
    /// The value for each of the keys.
    pub(crate) nodes: Vec<Node>,
}

impl Alternative {
    /// Parses a value of the axis that varies `keys`: a value for one key, a list with a value for
    /// each of several, or a table with a name and that list.
    pub(crate) fn read(node: &Node, keys: &[Vec<String>]) -> Result<Self> {
        if Key::names(keys::ALTERNATIVE).any(|key| node.get(key).is_some()) {
            return Self::named(node, keys);
        }
        if keys.len() == 1 {
            let label = node.label();
            return Ok(Self { written: label.clone(), label, nodes: vec![node.clone()] });
        }
        let nodes = together(node, keys)?;
        let label = readable(&nodes, keys);
        Ok(Self { label, written: node.label(), nodes })
    }

    fn named(node: &Node, keys: &[Vec<String>]) -> Result<Self> {
        let section = Section::new("a named value", &node.place, node, keys::ALTERNATIVE)?;
        let values = section.need("values", "[…], with a value for each place")?;
        let name = section.need("name", "\"…\"")?;
        let label = name.text()?.trim().to_owned();
        if label.is_empty() {
            return Err(ScenarioError::new(&name.place, "this name is empty")
                .help("say in a word or two what the value stands for"));
        }
        Ok(Self { label, written: values.label(), nodes: together(values, keys)? })
    }

    /// Checks that `axis` has no value yet with this name or text.
    pub(crate) fn check_new(&self, axis: &Axis, place: &Place) -> Result<()> {
        let twice = |text: &str| {
            ScenarioError::new(place, format!("the axis `{}` has `{text}` twice", axis.key))
        };
        if axis.written.contains(&self.written) {
            return Err(twice(&self.written).help("list each value once"));
        }
        if axis.values.contains(&self.label) {
            let help = format!("name each value: {NAMED}");
            return Err(twice(&self.label).help(help));
        }
        Ok(())
    }
}

/// The value for each key.
fn together(node: &Node, keys: &[Vec<String>]) -> Result<Vec<Node>> {
    match &node.value {
        Value::List(nodes) if nodes.len() == keys.len() => Ok(nodes.clone()),
        _ => {
            let count = keys.len();
            let message = match count {
                1 => "this axis varies one place".to_owned(),
                _ => format!("this axis varies {count} places together"),
            };
            Err(ScenarioError::new(&node.place, message)
                .help(format!("write each value as a list of {count}, or as {NAMED}")))
        }
    }
}

/// The name of an unnamed value. Equal values of keys of one kind, such as the rates of two paths,
/// are shown once.
fn readable(nodes: &[Node], keys: &[Vec<String>]) -> String {
    let mut kinds: Vec<(Option<&String>, Vec<String>)> = Vec::new();
    for (node, key) in nodes.iter().zip(keys) {
        match kinds.iter_mut().find(|(kind, _)| *kind == key.last()) {
            Some((_, values)) => values.push(node.label()),
            None => kinds.push((key.last(), vec![node.label()])),
        }
    }
    let shown = |(_, mut values): (_, Vec<String>)| {
        let alike = values.iter().all(|value| *value == values[0]);
        values.truncate(if alike { 1 } else { values.len() });
        values.join("/")
    };
    kinds.into_iter().map(shown).collect::<Vec<_>>().join(", ")
}
