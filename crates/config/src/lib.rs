//! TOML texts that people write: a tree in which everything knows where it stands, tables whose keys
//! are known, quantities with their units, and errors that show the place and what to do.
#![forbid(unsafe_code)]

mod controller;
mod error;
mod nearest;
mod section;
mod tree;

pub use error::{ConfigError, Place, Source};
pub use nearest::nearest;
pub use section::{Result, Section, each, wrong_type};
pub use tree::{Entry, Node, Value, toml_value};
