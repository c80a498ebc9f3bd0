//! Output to stderr. A reader that has gone, or a full disk behind it, does not fail the command: nothing is left to
//! report to, and the exit status says the rest.

use std::fmt;
use std::io::{self, Write};

use uncork_config::{visible, visible_styled};

/// A line. Names in it may come from files of others: their control characters become escapes.
pub(crate) fn line(text: fmt::Arguments<'_>) {
    write(&format!("{}\n", visible(&text.to_string())));
}

/// Text with styles. Its names have no control characters.
pub(crate) fn styled(text: &str) {
    write(&visible_styled(text));
}

fn write(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

/// In place of the standard library's macro, which panics where stderr is closed.
macro_rules! eprintln {
    ($($text:tt)*) => { $crate::stderr::line(::std::format_args!($($text)*)) };
}
