//! `uncork lab list`, `show` and `presets`: what is built in.

use uncork_lab::{Builtin, Preset, Suite};

use crate::failure::Failure;
use crate::values::Color;
use crate::{color, scenario, stdout};

/// Prints the names and titles of the built-in scenarios.
pub(super) fn list() -> Result<(), Failure> {
    let list = Builtin::list(color::terminal(Color::Never));
    stdout::write(
        list.map_err(|error| scenario::wrong(&error, "lab list", Color::Auto))?.as_bytes(),
    )
}

/// Prints all presets, or the values of the preset `name` with their sources.
pub(super) fn presets(name: Option<&str>) -> Result<(), Failure> {
    let preset = name.and_then(Preset::find);
    stdout::write(preset.map_or_else(Preset::list, |preset| preset.text()).as_bytes())
}

/// Prints the file of the built-in scenario `name`.
pub(super) fn show(name: &str) -> Result<(), Failure> {
    if let Some(suite) = Suite::find(name) {
        return stdout::data(suite.text.as_bytes());
    }
    let builtin = Builtin::find(name).ok_or_else(|| scenario::unknown("<NAME>", name, ""))?;
    stdout::data(builtin.text.as_bytes())
}
