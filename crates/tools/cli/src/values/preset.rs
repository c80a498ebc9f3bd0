//! Presets of access networks.

use clap::builder::{PossibleValue, PossibleValuesParser};
use uncork_lab::Preset;

/// The names of the presets, each with its title in the help.
pub(crate) fn presets() -> PossibleValuesParser {
    let value = |preset: &Preset| PossibleValue::new(preset.name).help(preset.title);
    PossibleValuesParser::new(Preset::all().iter().map(value))
}
