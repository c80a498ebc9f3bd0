//! Context for parsing.

use std::cell::RefCell;
use std::collections::BTreeMap;

use uncork_apps::TableError;
use uncork_config::{Node, Place, Result};
use uncork_path::{Trace, TraceError};

use super::super::Files;
use super::super::ScenarioError;

/// Everything needed for parsing, without the tree.
pub(crate) struct Context<'a> {
    files: &'a dyn Files,
    /// Cache of parsed traces, because a matrix has many cells.
    traces: RefCell<BTreeMap<String, Trace>>,
}

impl<'a> Context<'a> {
    pub(crate) fn new(files: &'a dyn Files) -> Self {
        Self { files, traces: RefCell::default() }
    }

    /// Name and text of the file given by `node`.
    pub(crate) fn file<'n>(&self, node: &'n Node) -> Result<(&'n str, String)> {
        let name = node.text()?;
        let text = self.files.read(name).map_err(|reason| {
            ScenarioError::new(&node.place, format!("cannot read the file `{name}`: {reason}"))
                .help("files are searched in the scenario's folder")
        })?;
        Ok((name, text))
    }

    /// The trace given by `node`: a built-in one or a file.
    pub(crate) fn trace(&self, node: &Node) -> Result<Trace> {
        let name = node.text()?;
        if let Ok(trace) = Trace::builtin(name) {
            return Ok(trace);
        }
        if let Some(trace) = self.traces.borrow().get(name) {
            return Ok(trace.clone());
        }
        let (_, text) = self.file(node).map_err(|error| {
            let known = Trace::BUILTIN;
            error
                .note(format!("traces that come along: {}", known.join(", ")))
                .or_nearest(name, known)
        })?;
        let trace: Trace = text.parse().map_err(|error| of_trace(node, name, &text, &error))?;
        self.traces.borrow_mut().insert(name.to_owned(), trace.clone());
        Ok(trace)
    }
}

/// Applies `parse` to the file `name` given by `node`. An error in one of its lines is reported
/// there.
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

fn of_trace(node: &Node, name: &str, text: &str, error: &TraceError) -> ScenarioError {
    match error {
        TraceError::Line { number, value, problem } => {
            let place = Place::in_file(name, text, *number);
            ScenarioError::worded(&place, problem).expected(format!("not `{value}`"))
        }
        _ => ScenarioError::worded(&node.place, error).note(format!("in the file `{name}`")),
    }
}
