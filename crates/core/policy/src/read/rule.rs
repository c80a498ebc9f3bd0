//! Parsing of rules.

use uncork_config::{ConfigError, Node, Result, Section, each};

use super::settings::Defaults;
use super::{condition, experiment, keys, settings, table};
use crate::experiment::Experiment;
use crate::policy::{Action, Rule};
use crate::table_use::TableUse;

/// The rules in source order.
pub(crate) fn rules(
    tree: &Node,
    text: &str,
    experiments: &[Experiment],
    table: &mut Option<TableUse>,
    defaults: &Defaults,
) -> Result<Vec<Rule>> {
    let rules = each(tree, "rule", keys::RULE, |section| {
        rule(section, text, experiments, table, defaults)
    })?;
    check_names(tree, &rules)?;
    check_used(tree, experiments, &rules)?;
    table::check_used(tree, table.as_ref())?;
    Ok(rules)
}

fn rule(
    section: &Section<'_>,
    text: &str,
    experiments: &[Experiment],
    table: &mut Option<TableUse>,
    defaults: &Defaults,
) -> Result<Rule> {
    let name = section.read("name", name)?;
    let conditions = condition::conditions(section)?;
    let action = action(section, experiments, table, defaults)?;
    if conditions.is_empty() && matches!(action, Action::Settings(_)) {
        return Err(ConfigError::new(
            section.place(),
            "a rule without conditions holds for all clients",
        )
        .help("write a condition, or put what it gives into [default]"));
    }
    let before = text.as_bytes().iter().take(section.place().span.start);
    let line = before.filter(|byte| **byte == b'\n').count() + 1;
    Ok(Rule { name, line, conditions: conditions.into(), action })
}

fn name(node: &Node) -> Result<Box<str>> {
    match node.text()? {
        "" => Err(ConfigError::new(&node.place, "the name is empty").help("leave it out")),
        name => Ok(name.into()),
    }
}

fn action(
    section: &Section<'_>,
    experiments: &[Experiment],
    table: &mut Option<TableUse>,
    defaults: &Defaults,
) -> Result<Action> {
    let what = "settings";
    match section.exactly_one(["use", "experiment", "table"], what)? {
        ("use", node) => settings::settings("`use`", section.key_place("use"), node, defaults)
            .map(Action::Settings),
        ("table", node) => table::section(node, table).map(Action::Table),
        (_, node) => experiment::index_of(node, experiments).map(Action::Experiment),
    }
}

fn check_names(tree: &Node, rules: &[Rule]) -> Result<()> {
    let nodes = tree.get("rule").and_then(|node| node.list().ok()).unwrap_or_default();
    for (index, rule) in rules.iter().enumerate() {
        let same = |other: &&Rule| rule.name.is_some() && other.name == rule.name;
        let Some(first) = rules[..index].iter().find(same) else { continue };
        let place = nodes.get(index).and_then(|node| node.get("name")).map(|node| &node.place);
        let name = rule.name.as_deref().unwrap_or_default();
        let message = format!("two rules have the name `{name}`");
        return Err(ConfigError::new(place.unwrap_or(&tree.place), message)
            .help(format!("give it another name: line {} has this one", first.line)));
    }
    Ok(())
}

fn check_used(tree: &Node, experiments: &[Experiment], rules: &[Rule]) -> Result<()> {
    for (index, experiment) in experiments.iter().enumerate() {
        let uses = |rule: &Rule| matches!(rule.action, Action::Experiment(used) if used == index);
        if !rules.iter().any(uses) {
            let entries = tree.get("experiment").map(Node::entries).unwrap_or_default();
            let place = entries.get(index).map_or(&tree.place, |entry| &entry.place);
            return Err(super::experiment::unused(&experiment.name, place));
        }
    }
    Ok(())
}
