//! Tests of policy texts.

mod by_network;
mod common;
mod experiments;
mod explain;
mod flat;
mod knowledge;
mod meaning;
mod mistakes;
mod mmdb;
mod mutations;
mod origins;
mod reference;
mod table;
#[path = "../../../config/tests/texts/mod.rs"]
mod texts;
mod vectors;
