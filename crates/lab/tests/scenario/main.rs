//! Scenario files: what they mean, and what is said of those that mean nothing.

mod commands;
mod common;
mod meaning;
mod mistakes;
mod mutations;
mod reference;
#[path = "../../../config/tests/texts/mod.rs"]
mod texts;
