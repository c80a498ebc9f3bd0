//! Scenario files: their meaning, and the error messages for invalid ones.

mod commands;
mod common;
mod document;
mod meaning;
mod mistakes;
mod mutations;
mod presets;
mod reference;
mod sampling;
#[path = "../../../../core/config/tests/texts/mod.rs"]
mod texts;
