//! Scenario files: their meaning, and the error messages for invalid ones.

mod commands;
mod common;
mod document;
mod from_logs;
mod meaning;
mod mistakes;
mod mutations;
mod of_kernel;
mod presets;
mod reference;
mod sampling;
#[path = "../../../../core/config/tests/texts/mod.rs"]
mod texts;
mod twin_truth;
