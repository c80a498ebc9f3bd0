//! Parsing of the table of networks, which is a file of its own.

use uncork_config::{ConfigError, Entry, Node, Result, Section, wrong_type};

use super::settings::Defaults;
use super::{keys, settings};
use crate::table_use::TableUse;

const EXAMPLE: &str = "[table.arm.NAME]";

/// The `[table]`, if there is one.
pub(crate) fn table(file: &Section<'_>, defaults: &Defaults) -> Result<Option<TableUse>> {
    file.read("table", |node| {
        let place = file.key_place("table");
        let section = Section::new("[table]", place, node, keys::TABLE)?;
        let name = path(section.need("file", "\"networks.table\"")?)?;
        let arms = section.need("arm", EXAMPLE)?;
        if arms.entries().is_empty() {
            return Err(wrong_type(arms, "a table of tables").help(format!("write {EXAMPLE}")));
        }
        let arm = |entry: &Entry| {
            let title = format!("[table.arm.{}]", entry.name);
            let settings = settings::settings(&title, &entry.place, &entry.node, defaults)?;
            Ok((entry.name.as_str().into(), settings))
        };
        let arms = arms.entries().iter().map(arm).collect::<Result<_>>()?;
        Ok(TableUse { file: name, arms, sections: Vec::new(), loaded: None })
    })
}

fn path(node: &Node) -> Result<Box<str>> {
    match node.text()? {
        "" => Err(ConfigError::new(&node.place, "the file has no name")
            .help("write file = \"networks.table\"")),
        name => Ok(name.into()),
    }
}

/// The index of the section for which a rule asks.
pub(crate) fn section(node: &Node, table: &mut Option<TableUse>) -> Result<usize> {
    let name = node.text()?;
    let Some(table) = table else {
        return Err(ConfigError::new(&node.place, "the policy has no table")
            .help("write [table] with the name of its file"));
    };
    let found = table.sections.iter().position(|(known, _)| &**known == name);
    Ok(found.unwrap_or_else(|| {
        table.sections.push((name.into(), format!("table = \"{name}\"").into()));
        table.sections.len() - 1
    }))
}

/// An error for a table for which no rule asks.
pub(crate) fn check_used(tree: &Node, table: Option<&TableUse>) -> Result<()> {
    if table.is_none_or(|table| !table.sections.is_empty()) {
        return Ok(());
    }
    let place = tree.get("table").map_or(&tree.place, |node| &node.place);
    Err(ConfigError::new(place, "no rule asks for the table")
        .help("write table = \"SECTION\" in a rule, or leave [table] out"))
}
