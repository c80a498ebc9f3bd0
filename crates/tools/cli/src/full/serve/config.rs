//! The configuration file: its keys are the flags of the command line, its tables are the server's.

use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use clap::error::{ContextKind, ContextValue};
use clap::{Arg, ArgMatches, Args, FromArgMatches};
use uncork_config::{ConfigError, Node, Result, Value, wrong_type};
use uncork_serve::config::TABLES;

use super::args::ServeArgs;
use crate::color;
use crate::failure::Failure;
use crate::values::{Color, is_given, shown};

/// Flags that only the command line has.
const NO_KEYS: [&str; 4] = ["config", "check", "quiet", "help"];

/// A configuration file.
pub(super) struct ConfigFile {
    name: String,
    text: String,
    pub(super) tree: Node,
}

impl ConfigFile {
    pub(super) fn read(path: &Path) -> std::result::Result<Self, Failure> {
        let unreadable = |error| Failure::unreadable(&shown::<ServeArgs>("config"), path, &error);
        let text = fs::read_to_string(path).map_err(unreadable)?;
        let name = path.display().to_string();
        let tree = Node::of_text(&text).map_err(|error| wrong(&name, &text, error))?;
        Ok(Self { name, text, tree })
    }

    /// The arguments of the file and of the command line `given`, which wins.
    pub(super) fn arguments(&self, given: &ArgMatches) -> std::result::Result<ServeArgs, Failure> {
        let definition = clap::Command::new("uncork serve").no_binary_name(true);
        let definition = ServeArgs::augment_args(definition);
        self.check_keys(&definition).map_err(|error| self.wrong(error))?;
        let mut line = Vec::new();
        for argument in definition.get_arguments() {
            let id = argument.get_id().as_str();
            if is_given(given, id) {
                line.extend(repeated(argument, given));
            } else if let Some(node) = self.tree.get(id) {
                line.extend(written(argument, node).map_err(|error| self.wrong(error))?);
            }
        }
        let matches = definition.try_get_matches_from(line).map_err(|error| self.explain(error))?;
        ServeArgs::from_arg_matches(&matches).map_err(Failure::Clap)
    }

    /// The error with its place in the file.
    pub(super) fn wrong(&self, error: ConfigError) -> Failure {
        wrong(&self.name, &self.text, error)
    }

    fn check_keys(&self, definition: &clap::Command) -> Result<()> {
        let ids = definition.get_arguments().map(|argument| argument.get_id().as_str());
        let known: Vec<&str> = ids.filter(|id| !NO_KEYS.contains(id)).chain(TABLES).collect();
        let mut keys = self.tree.entries().iter();
        match keys.find(|key| !known.contains(&key.name.as_str())) {
            Some(key) => Err(ConfigError::new(&key.place, format!("unknown key `{}`", key.name))
                .nearest(&key.name, known.iter().copied())),
            None => Ok(()),
        }
    }

    /// An error of the arguments that a key has caused, at its place.
    fn explain(&self, error: clap::Error) -> Failure {
        let argument = match error.get(ContextKind::InvalidArg) {
            Some(ContextValue::String(argument)) => argument.as_str(),
            _ => "",
        };
        let flag = argument.split([' ', '=']).next().unwrap_or_default();
        let key = flag.trim_start_matches('-').replace('-', "_");
        let Some(node) = self.tree.get(&key) else { return Failure::Clap(error) };
        if let Some(reason) = error.source() {
            return self.wrong(ConfigError::worded(&node.place, reason));
        }
        let text = error.to_string();
        let line = text.lines().next().unwrap_or_default();
        let line = line.strip_prefix("error: ").unwrap_or(line);
        self.wrong(ConfigError::new(&node.place, line))
    }
}

fn wrong(name: &str, text: &str, error: ConfigError) -> Failure {
    let error = error.within(text, &[]);
    Failure::Shown(error.render(name, color::on_stderr(Color::Auto)))
}

/// The argument as the command line has it.
fn repeated(argument: &Arg, given: &ArgMatches) -> Vec<OsString> {
    let flag = OsString::from(format!("--{}", argument.get_long().unwrap_or_default()));
    if !argument.get_action().takes_values() {
        return vec![flag];
    }
    let values = given.get_raw(argument.get_id().as_str()).into_iter().flatten();
    values.map(|value| [flag.as_os_str(), "=".as_ref(), value].into_iter().collect()).collect()
}

/// The argument as the file has it.
fn written(argument: &Arg, node: &Node) -> Result<Vec<OsString>> {
    let flag = format!("--{}", argument.get_long().unwrap_or_default());
    if !argument.get_action().takes_values() {
        return Ok(if node.flag()? { vec![flag.into()] } else { Vec::new() });
    }
    let one = |node: &Node| match &node.value {
        Value::Text(text) | Value::Number(text) => Ok(OsString::from(format!("{flag}={text}"))),
        _ => Err(wrong_type(node, "a string")),
    };
    match &node.value {
        Value::List(members) if matches!(argument.get_action(), clap::ArgAction::Append) => {
            members.iter().map(one).collect()
        }
        _ => one(node).map(|one| vec![one]),
    }
}
