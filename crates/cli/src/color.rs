//! Whether to write in colour.

use std::io::{self, IsTerminal};

use uncork_report::Style;

use crate::args::Color;

/// How to write to stdout.
pub(crate) fn style(color: Color) -> Style {
    if wanted(color, io::stdout().is_terminal()) { Style::Ansi } else { Style::Plain }
}

/// Whether messages on stderr have colours.
pub(crate) fn on_stderr(color: Color) -> bool {
    wanted(color, io::stderr().is_terminal())
}

fn wanted(color: Color, is_terminal: bool) -> bool {
    match color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => is_understood(is_terminal),
    }
}

fn is_understood(is_terminal: bool) -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_dumb = || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    is_terminal && !is_set("NO_COLOR") && !is_dumb()
}
