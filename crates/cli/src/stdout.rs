//! What stdout gets.

use std::io::{self, IsTerminal, Write};

use uncork_config::{visible, visible_styled};

use crate::failure::Failure;

/// Text for people. Names in it may come from files of others: their control characters become escapes.
pub(crate) fn write(text: &[u8]) -> Result<(), Failure> {
    raw(visible(&String::from_utf8_lossy(text)).as_bytes())
}

/// Text for people with styles. Its names have no control characters.
pub(crate) fn styled(text: &str) -> Result<(), Failure> {
    raw(visible_styled(text).as_bytes())
}

/// Data for programs: as it is, unless it goes to a terminal.
pub(crate) fn data(bytes: &[u8]) -> Result<(), Failure> {
    if io::stdout().is_terminal() { write(bytes) } else { raw(bytes) }
}

fn raw(bytes: &[u8]) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush()).map_err(|error| Failure::stdout(&error))
}
