//! What stdout gets. A reader that leaves early (`uncork … | head -1`) is not an error: the rest of the output is
//! dropped, files are written nevertheless, and the exit status is what it would have been.

use std::io::{self, ErrorKind, IsTerminal, Write};

use uncork_config::{visible, visible_styled};

use crate::failure::Failure;

/// Text for people. Names in it may come from files of others: their control characters become escapes.
pub(crate) fn write(text: &[u8]) -> Result<(), Failure> {
    stream(text).map(drop)
}

/// The same, of a command that prints until its reader leaves: `false` when no one reads any more.
pub(crate) fn stream(text: &[u8]) -> Result<bool, Failure> {
    raw(visible(&String::from_utf8_lossy(text)).as_bytes())
}

/// Text for people with styles. Its names have no control characters.
pub(crate) fn styled(text: &str) -> Result<(), Failure> {
    raw(visible_styled(text).as_bytes()).map(drop)
}

/// Data for programs: as it is, unless it goes to a terminal.
pub(crate) fn data(bytes: &[u8]) -> Result<(), Failure> {
    if io::stdout().is_terminal() { write(bytes) } else { raw(bytes).map(drop) }
}

fn raw(bytes: &[u8]) -> Result<bool, Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => {
            Err(Failure::Environment(format!("cannot write to standard output: {error}")))
        }
    }
}
