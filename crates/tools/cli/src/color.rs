//! Capabilities of stdout and stderr: colours and width.

use std::io::{self, IsTerminal};

use uncork_terminal::{Style, Terminal};

use crate::values::Color;

/// Minimum width: narrower terminals are treated as this wide.
const NARROWEST: usize = 40;

/// Style for stdout.
pub(crate) fn style(color: Color) -> Style {
    if wanted(color, io::stdout().is_terminal()) { Style::Ansi } else { Style::Plain }
}

/// Style and line width for stdout.
pub(crate) fn terminal(color: Color) -> Terminal {
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok();
    let size = || size.map(|size| usize::from(size.ws_col));
    Terminal { style: style(color), width: width(columns.or_else(size)) }
}

/// The line width, from the width that the user or the terminal reports.
fn width(reported: Option<usize>) -> usize {
    reported.filter(|columns| *columns > 0).unwrap_or(Terminal::USUAL_WIDTH).max(NARROWEST)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn width_is_that_of_the_terminal_or_100() {
        assert_eq!(width(Some(132)), 132);
        assert_eq!([width(None), width(Some(0))], [100; 2]);
        assert_eq!(width(Some(7)), 40);
    }
}
