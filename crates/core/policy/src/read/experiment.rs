//! Parsing of experiments and their arms.

use uncork_config::{ConfigError, Entry, Node, Place, Result, Section, wrong_type};
use uncork_units::Probability;

use super::settings::Defaults;
use super::{keys, settings};
use crate::experiment::{Arm, Experiment, Unit, divide};

/// Range of an arm's weight.
pub(crate) const WEIGHTS: std::ops::RangeInclusive<u64> = 1..=10_000;

/// The probability steps of a slot, 0.01 %.
const SLOT: u64 = Probability::ALWAYS.steps() / crate::SLOTS as u64;

/// The experiments in source order.
pub(crate) fn experiments(
    file: &Section<'_>,
    key: [u8; 16],
    defaults: &Defaults,
) -> Result<Vec<Experiment>> {
    let Some(node) = file.get("experiment") else { return Ok(Vec::new()) };
    let read = |entry: &Entry| experiment(entry, key, defaults);
    named(node, "experiment", "[experiment.NAME]")?.iter().map(read).collect()
}

/// The named tables of `node`.
fn named<'a>(node: &'a Node, what: &str, example: &str) -> Result<&'a [Entry]> {
    let entries = node.entries();
    if let Some(entry) = entries.iter().find(|entry| entry.name.is_empty()) {
        return Err(ConfigError::new(&entry.place, format!("an {what} has a name"))
            .help(format!("write {example}")));
    }
    if entries.is_empty() {
        return Err(wrong_type(node, "a table of tables").help(format!("write {example}")));
    }
    Ok(entries)
}

fn experiment(entry: &Entry, key: [u8; 16], defaults: &Defaults) -> Result<Experiment> {
    let Entry { name, place, node } = entry;
    let title = format!("[experiment.{name}]");
    let section = Section::new(&title, place, node, keys::EXPERIMENT)?;
    let unit = unit(section.need("unit", "\"prefix\"")?)?;
    let share_node = section.need("share", "\"10%\"")?;
    let share = share(share_node)?;
    let arms = section.get("arm").ok_or_else(|| {
        ConfigError::new(place, format!("{title} has no arm"))
            .help(format!("write [experiment.{name}.arm.NAME]"))
    })?;
    let arms = named(arms, "arm", &format!("[experiment.{name}.arm.NAME]"))?;
    let arms = arms.iter().map(|arm| self::arm(name, arm, defaults)).collect::<Result<Vec<_>>>()?;
    let weights: Vec<u64> = arms.iter().map(|(weight, _)| *weight).collect();
    let parts = divide(&weights, share);
    let arms = arms.into_iter().zip(parts);
    let arms: Vec<Arm> =
        arms.map(|((_, arm), (first, slots))| Arm { first, slots, ..arm }).collect();
    check_slots(share_node, share, &arms)?;
    Ok(Experiment {
        name: name.as_str().into(),
        unit,
        salt: salt(&section, name)?,
        key,
        arms: arms.into(),
        written: format!("experiment = \"{name}\"").into(),
    })
}

/// The salt, which makes experiments independent of each other; default: the experiment's name.
fn salt(section: &Section<'_>, name: &str) -> Result<Box<str>> {
    let salt = section.read("salt", |node| match node.text()? {
        "" => Err(ConfigError::new(&node.place, "the salt is empty")
            .help("use a word, or remove it: the name is the default salt")),
        salt => Ok(salt),
    })?;
    Ok(salt.unwrap_or(name).into())
}

fn share(node: &Node) -> Result<Probability> {
    let share: Probability = node.parse()?;
    if share.steps().is_multiple_of(SLOT) {
        return Ok(share);
    }
    Err(ConfigError::new(&node.place, format!("{share} is not a multiple of 0.01%"))
        .help("use a share with at most two decimal places, such as 0.25%"))
}

fn check_slots(node: &Node, share: Probability, arms: &[Arm]) -> Result<()> {
    match arms.iter().find(|arm| arm.slots == 0 && share > Probability::NEVER) {
        Some(arm) => {
            let message =
                format!("of a share of {share} nothing is left for the arm `{}`", arm.name);
            Err(ConfigError::new(&node.place, message)
                .help("use a larger share, or weights that differ less"))
        }
        None => Ok(()),
    }
}

fn unit(node: &Node) -> Result<Unit> {
    let text = node.text()?;
    match text.split_once(':') {
        Some(("cookie", name)) => {
            super::condition::cookie_name(&node.place, name).map(Unit::Cookie)
        }
        Some(("header", name)) => {
            super::condition::header_name(&node.place, name).map(Unit::Header)
        }
        None if text == "prefix" => Ok(Unit::Prefix),
        _ => Err(ConfigError::new(&node.place, format!("`{text}` is not a unit"))
            .expected("what is dealt to the arms")
            .help("write prefix, cookie:NAME or header:NAME")),
    }
}

/// The weight of an arm, and the arm without its slots.
fn arm(experiment: &str, entry: &Entry, defaults: &Defaults) -> Result<(u64, Arm)> {
    let Entry { name, place, node } = entry;
    let title = format!("[experiment.{experiment}.arm.{name}]");
    let section = Section::new(&title, place, node, keys::ARM)?;
    let weight = section.read("weight", |node| node.whole(WEIGHTS))?.unwrap_or(1);
    let settings = settings::of(&section, defaults)?;
    Ok((weight, Arm { name: name.as_str().into(), settings, first: 0, slots: 0 }))
}

/// The index of the experiment that `node` names.
pub(crate) fn index_of(node: &Node, experiments: &[Experiment]) -> Result<usize> {
    let name = node.text()?;
    let found = experiments.iter().position(|experiment| &*experiment.name == name);
    found.ok_or_else(|| {
        let error = ConfigError::new(&node.place, format!("unknown experiment `{name}`"));
        match experiments {
            [] => error.help(format!("write [experiment.{name}]")),
            known => error.nearest(name, known.iter().map(|experiment| &*experiment.name)),
        }
    })
}

/// The error for an experiment that no rule uses; `place` is that of its name.
pub(crate) fn unused(name: &str, place: &Place) -> ConfigError {
    ConfigError::new(place, format!("no rule uses the experiment `{name}`"))
        .help(format!("write experiment = \"{name}\" in a rule, or leave the experiment out"))
}
