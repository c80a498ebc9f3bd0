//! What stands beside the scenario.

use uncork_play::TableError;

use super::super::Files;
use super::super::document::Node;
use super::super::error::{Place, ScenarioError};
use super::section::{Result, Section};

/// What reading needs besides the tree.
pub(crate) struct Context<'a> {
    files: &'a dyn Files,
}

impl<'a> Context<'a> {
    pub(crate) fn new(files: &'a dyn Files) -> Self {
        Self { files }
    }

    /// The name and the text of the file that `node` names.
    pub(crate) fn file<'n>(&self, node: &'n Node) -> Result<(&'n str, String)> {
        let name = node.text()?;
        let text = self.files.read(name).map_err(|reason| {
            ScenarioError::new(&node.place, format!("cannot read the file `{name}`: {reason}"))
                .help("a file is looked for beside the scenario")
        })?;
        Ok((name, text))
    }
}

/// Fails if any of `keys` is there, which this version cannot do.
pub(crate) fn later(section: &Section<'_>, keys: &[&str]) -> Result<()> {
    match keys.iter().find(|key| section.get(key).is_some()) {
        Some(key) => {
            let message = format!("`{key}` is not available in this version");
            Err(ScenarioError::new(section.key_place(key), message))
        }
        None => Ok(()),
    }
}

/// What `parse` makes of the file `name` that `node` names; what is wrong with one of its lines is
/// shown there.
pub(crate) fn table<T>(
    node: &Node,
    name: &str,
    text: &str,
    parse: impl FnOnce(&str) -> std::result::Result<T, TableError>,
) -> Result<T> {
    parse(text).map_err(|error| match error.line() {
        Some(line) => ScenarioError::new(&Place::in_file(name, text, line), error.problem()),
        None => ScenarioError::new(&node.place, format!("`{name}`: {}", error.problem())),
    })
}
