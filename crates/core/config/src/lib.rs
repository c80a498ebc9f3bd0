//! TOML configuration: a tree with the place of each value, tables with known keys, quantities with
//! units, and errors that show place and remedy.
#![forbid(unsafe_code)]

mod error;
mod key;
mod nearest;
mod section;
mod tree;
mod visible;

pub use error::{ConfigError, Place, Source};
pub use key::Key;
pub use nearest::nearest;
pub use section::{Result, Section, each, wrong_type};
pub use tree::{Entry, Node, Value, toml_value};
pub use visible::{visible, visible_styled};
