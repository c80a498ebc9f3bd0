//! What a terminal can show.

/// Capabilities of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Plain text.
    Plain,
    /// Bold and dim by ANSI escape sequences.
    Ansi,
}

impl Style {
    /// `text` in bold.
    pub fn bold(self, text: &str) -> String {
        self.sgr(1, text)
    }

    /// `text` dimmed.
    pub fn dim(self, text: &str) -> String {
        self.sgr(2, text)
    }

    fn sgr(self, code: u8, text: &str) -> String {
        match self {
            Self::Ansi if !text.is_empty() => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
            _ => text.to_owned(),
        }
    }
}

/// Output terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// Supported escape sequences.
    pub style: Style,
    /// Characters per line. No line is longer, unless this is below 40.
    pub width: usize,
}

impl Terminal {
    /// Default line width if no terminal reports one.
    pub const USUAL_WIDTH: usize = 100;
}

impl From<Style> for Terminal {
    /// A terminal of width [`Terminal::USUAL_WIDTH`].
    fn from(style: Style) -> Self {
        Self { style, width: Self::USUAL_WIDTH }
    }
}
