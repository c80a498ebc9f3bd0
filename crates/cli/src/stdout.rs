//! Data on stdout.

use std::io::{self, Write};

use crate::failure::Failure;

/// Writes all of `bytes`.
pub(crate) fn write(bytes: &[u8]) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush()).map_err(|error| Failure::stdout(&error))
}
