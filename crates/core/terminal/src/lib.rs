//! Text for terminals: aligned tables, wrapped lines, bold and dim.
//!
//! Everything here is a pure function to strings.
#![forbid(unsafe_code)]

mod table;
mod terminal;
mod text;

pub use table::{Align, Column, Table};
pub use terminal::{Style, Terminal};
pub use text::{printable, push_bold, push_line, width, wrap};
