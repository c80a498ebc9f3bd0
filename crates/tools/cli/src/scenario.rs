//! A scenario that the user names: a built-in one or a file.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use uncork_lab::{Builtin, Files, Scenario, ScenarioError};

use crate::color;
use crate::failure::Failure;
use crate::values::Color;

/// The file extension that distinguishes a file from a name.
const ENDING: &str = "toml";

/// The scenario given as `given` for `argument`, with the values of `set`, and the files it uses.
pub(crate) fn read(
    argument: &str,
    given: &str,
    set: &[(String, String)],
    color: Color,
) -> Result<(Scenario, BTreeMap<String, String>), Failure> {
    let path = Path::new(given);
    let (parsed, files) = if path.extension().is_some_and(|ending| ending == ENDING) {
        let text = fs::read_to_string(path)
            .map_err(|error| Failure::unreadable(argument, path, &error))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let files = ScenarioFiles::of(path);
        (Scenario::parse(&name, &text, set, &files), files.read.into_inner())
    } else {
        let builtin = Builtin::find(given)
            .ok_or_else(|| unknown(argument, given, ", and files end in .toml"))?;
        (builtin.parse(set), BTreeMap::new())
    };
    let scenario = parsed.map_err(|error| wrong(&error, given, color))?;
    Ok((scenario, files))
}

/// Error: no built-in scenario is called `name`; `or` lists other possibilities.
pub(crate) fn unknown(argument: &str, name: &str, or: &str) -> Failure {
    let near = Builtin::near(name);
    let known = match near.as_slice() {
        [] => "`uncork lab list` lists them".to_owned(),
        near => format!("did you mean {}?", near.join(" or ")),
    };
    Failure::value(argument, name, format!("no built-in scenario has this name{or}; {known}"))
}

/// The error in the scenario given as `given`, with its location.
pub(crate) fn wrong(error: &ScenarioError, given: &str, color: Color) -> Failure {
    Failure::Shown(error.render(given, color::on_stderr(color)))
}

/// Why a file cannot be read.
fn unreadable(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file".to_owned(),
        io::ErrorKind::InvalidData => "not UTF-8 text".to_owned(),
        _ => error.to_string(),
    }
}

/// The files in a scenario's directory, with those read so far.
struct ScenarioFiles {
    directory: PathBuf,
    read: RefCell<BTreeMap<String, String>>,
}

impl ScenarioFiles {
    fn of(scenario: &Path) -> Self {
        let directory = scenario.parent().unwrap_or(Path::new("")).to_path_buf();
        Self { directory, read: RefCell::default() }
    }
}

impl Files for ScenarioFiles {
    fn read(&self, name: &str) -> Result<String, String> {
        if let Some(text) = self.read.borrow().get(name) {
            return Ok(text.clone());
        }
        let text = fs::read_to_string(self.directory.join(name));
        let text = text.map_err(|error| unreadable(&error))?;
        self.read.borrow_mut().insert(name.to_owned(), text.clone());
        Ok(text)
    }
}
