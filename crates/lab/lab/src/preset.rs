//! Preset paths of access networks, with a source for each value.

use uncork_config::Node;
use uncork_path::PathSpec;

use crate::builtin::NoFiles;
use crate::scenario::preset_path;

/// The path of an access network according to measurements and standards.
#[derive(Clone, Debug)]
pub struct Preset {
    /// Its name: `lte`.
    pub name: String,
    /// One-line title.
    pub title: String,
    /// The keys of `[path]` that it sets.
    pub values: Vec<PresetValue>,
}

/// A value of a preset.
#[derive(Clone, Debug)]
pub struct PresetValue {
    /// Its key in `[path]`: `rtt`.
    pub key: String,
    /// Its source, or `assumed`.
    pub source: String,
    pub(crate) node: Node,
}

impl Preset {
    /// All presets in the order of their file. A test checks that every entry is parsed.
    pub fn all() -> Vec<Self> {
        let tree = Node::of_text(include_str!("../presets.toml")).ok();
        let entries = tree.as_ref().map(Node::entries).unwrap_or_default();
        entries.iter().filter_map(|entry| Self::read(&entry.name, &entry.node)).collect()
    }

    /// The preset of this name.
    pub fn find(name: &str) -> Option<Self> {
        Self::all().into_iter().find(|preset| preset.name == name)
    }

    fn read(name: &str, node: &Node) -> Option<Self> {
        let text = |node: &Node| node.text().ok().map(str::to_owned);
        let sources = node.get("from")?;
        let values = node.get("path")?.entries().iter().map(|entry| {
            let source = text(sources.get(&entry.name)?)?;
            Some(PresetValue { key: entry.name.clone(), source, node: entry.node.clone() })
        });
        let title = text(node.get("title")?)?;
        Some(Self { name: name.to_owned(), title, values: values.collect::<Option<_>>()? })
    }

    /// The path as parsed by scenarios. `None` for an invalid preset, which a test excludes.
    pub fn path(&self) -> Option<PathSpec> {
        preset_path(&self.name, &NoFiles)
    }
}

impl PresetValue {
    /// The value in scenario syntax: `21ms`.
    pub fn value(&self) -> String {
        self.node.label()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 12] = [
        "fibre",
        "cable",
        "dsl",
        "wifi",
        "3g",
        "slow-4g",
        "lte",
        "5g",
        "satellite-geo",
        "satellite-leo",
        "datacenter",
        "intercontinental",
    ];

    #[test]
    fn every_preset_of_the_file_is_read_with_a_source_for_each_value() {
        let presets = Preset::all();
        let names: Vec<&str> = presets.iter().map(|preset| preset.name.as_str()).collect();
        assert_eq!(names, NAMES);
        for preset in &presets {
            assert!(!preset.title.is_empty());
            assert!(preset.path().is_some(), "{}", preset.name);
            for key in ["rtt", "loss", "buffer"] {
                assert!(preset.values.iter().any(|value| value.key == key), "{}", preset.name);
            }
            for value in &preset.values {
                assert!(!value.source.is_empty(), "{}: {}", preset.name, value.key);
            }
        }
    }

    #[test]
    fn sources_and_values_of_a_preset_have_the_same_keys() {
        let tree = Node::of_text(include_str!("../presets.toml")).unwrap();
        for entry in tree.entries() {
            let keys = |table: &str| {
                let entries = entry.node.get(table).unwrap().entries();
                entries.iter().map(|entry| entry.name.clone()).collect::<Vec<_>>()
            };
            assert_eq!(keys("path"), keys("from"), "{}", entry.name);
        }
    }
}
