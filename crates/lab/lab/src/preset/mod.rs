//! Preset paths of access networks, with a source for each value.

mod table;

use std::str::FromStr;

use uncork_config::{Entry, Node, Place, Value};
use uncork_path::{JitterDistribution, JitterSpec, LinkSpec, LteSpec, PathSpec, RateSpec};
use uncork_units::{Rate, Ratio, TimeDelta};

use crate::decimal::decimal;

/// The path of an access network according to measurements and standards.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// Its name: `lte`.
    pub name: &'static str,
    /// One-line title.
    pub title: &'static str,
    /// The keys of `[path]` that it sets.
    pub values: &'static [PresetValue],
}

/// A value of a preset.
#[derive(Clone, Copy, Debug)]
pub struct PresetValue {
    /// Its key in `[path]`: `rtt`.
    pub key: &'static str,
    /// Its source, or `assumed`.
    pub source: &'static str,
    term: PresetTerm,
}

/// What a preset has at a key: texts, which scenarios parse, too.
#[derive(Clone, Copy, Debug)]
enum PresetTerm {
    Text(&'static str),
    /// An inline table.
    Table(Pairs),
}

/// Keys with their values.
type Pairs = &'static [(&'static str, &'static str)];

impl Preset {
    /// All presets.
    pub fn all() -> &'static [Self] {
        &table::PRESETS
    }

    /// The preset of this name.
    pub fn find(name: &str) -> Option<Self> {
        Self::all().iter().find(|preset| preset.name == name).copied()
    }

    /// The path that a scenario reads of its values. `None` for an invalid preset, which a test excludes.
    pub fn path(&self) -> Option<PathSpec> {
        let rate = match self.table("lte") {
            Some(lte) => RateSpec::Lte(mobile(lte)?),
            None => RateSpec::Constant(parsed(self.text_at("rate"))?),
        };
        let [rtt, buffer] = ["rtt", "buffer"].map(|key| self.text_at(key));
        let mut path = PathSpec::new(Rate::ZERO, parsed(rtt)?, parsed(buffer)?);
        path.link.rate = rate;
        path.link.queue = parsed(self.text_at("queue")).unwrap_or_default();
        path.loss = parsed(self.text_at("loss")).unwrap_or(path.loss);
        path.jitter = parsed(self.text_at("jitter")).map(uniform);
        path.aggregation = parsed::<TimeDelta>(self.text_at("aggregation")).map(Into::into);
        path.uplink = self.table("uplink").and_then(uplink);
        Some(path)
    }

    /// The assumption that `source` stands for: the path called `path` has `value` at `key`.
    pub(crate) fn assumption(&self, path: &str, key: &str, value: &str, source: &str) -> String {
        format!("{path} {key} = {value}, preset {}: {source}", self.name)
    }

    fn term(&self, key: &str) -> Option<PresetTerm> {
        self.values.iter().find(|value| value.key == key).map(|value| value.term)
    }

    fn text_at(&self, key: &str) -> Option<&'static str> {
        match self.term(key)? {
            PresetTerm::Text(text) => Some(text),
            PresetTerm::Table(_) => None,
        }
    }

    fn table(&self, key: &str) -> Option<Pairs> {
        match self.term(key)? {
            PresetTerm::Text(_) => None,
            PresetTerm::Table(pairs) => Some(pairs),
        }
    }
}

impl PresetValue {
    /// The value in scenario syntax: `21ms`.
    pub fn value(&self) -> String {
        match self.term {
            PresetTerm::Text(text) => text.to_owned(),
            PresetTerm::Table(pairs) => {
                let pairs: Vec<String> =
                    pairs.iter().map(|(key, text)| format!("{key} = {text}")).collect();
                format!("{{ {} }}", pairs.join(", "))
            }
        }
    }

    /// The value as a scenario at `place` would have it.
    pub(crate) fn node(&self, place: &Place) -> Node {
        let node = |value| Node { place: place.clone(), value };
        match self.term {
            PresetTerm::Text(text) => node(value(text)),
            PresetTerm::Table(pairs) => {
                let entry = |(name, text): &(&str, &str)| Entry {
                    name: (*name).to_owned(),
                    place: place.clone(),
                    node: node(value(text)),
                };
                node(Value::Table(pairs.iter().map(entry).collect()))
            }
        }
    }
}

/// Jitter that does not reorder, as of a scenario that only names its maximum.
pub(crate) fn uniform(max: TimeDelta) -> JitterSpec {
    JitterSpec { distribution: JitterDistribution::Uniform, max, reorder: false }
}

/// Scenarios write plain numbers without quotes.
fn value(text: &str) -> Value {
    let is_number = decimal(text).is_some();
    if is_number { Value::Number(text.to_owned()) } else { Value::Text(text.to_owned()) }
}

fn parsed<T: FromStr>(text: Option<&str>) -> Option<T> {
    text?.parse().ok()
}

fn of<T: FromStr>(pairs: Pairs, key: &str) -> Option<T> {
    parsed(pairs.iter().find(|(name, _)| *name == key).map(|(_, text)| *text))
}

fn uplink(pairs: Pairs) -> Option<LinkSpec> {
    let link = LinkSpec::new(of(pairs, "rate")?, of(pairs, "buffer")?);
    Some(LinkSpec { queue: of(pairs, "queue").unwrap_or_default(), ..link })
}

fn mobile(pairs: Pairs) -> Option<LteSpec> {
    let usual = LteSpec::usual(of(pairs, "mean")?);
    let variation = pairs.iter().find(|(name, _)| *name == "variation");
    let variation = decimal(variation?.1)?;
    Some(LteSpec {
        variation: Ratio::new((variation * 1000.0).round() as u32, 1000),
        correlation: of(pairs, "correlation")?,
        ..usual
    })
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
    fn every_preset_has_a_path_and_a_source_for_each_value() {
        let presets = Preset::all();
        let names: Vec<&str> = presets.iter().map(|preset| preset.name).collect();
        assert_eq!(names, NAMES);
        for preset in presets {
            assert!(!preset.title.is_empty());
            assert!(preset.path().is_some(), "{}", preset.name);
            for key in ["rtt", "loss", "buffer"] {
                assert!(preset.values.iter().any(|value| value.key == key), "{}", preset.name);
            }
            for value in preset.values {
                assert!(!value.source.is_empty(), "{}: {}", preset.name, value.key);
            }
        }
    }
}
