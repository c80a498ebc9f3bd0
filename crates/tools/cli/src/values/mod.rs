//! Values that arguments of several commands have: commands import them, and they import no command.

mod argument;
mod color;
mod format;
mod local;
mod number;
mod place;
mod preset;
mod setting;
mod shell;

#[cfg(test)]
pub(crate) use argument::parsed;
pub(crate) use argument::{is_given, shown};
pub(crate) use color::Color;
pub(crate) use format::{Format, TextFormat};
pub(crate) use local::local_path;
pub(crate) use number::{count, jobs, seed, threads};
pub(crate) use place::Place;
pub(crate) use preset::presets;
pub(crate) use setting::Setting;
pub(crate) use shell::quoted;
