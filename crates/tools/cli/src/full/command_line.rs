//! The command line of this process.

use crate::values::quoted;

/// The given command line, quoted for a shell.
pub(crate) fn command_line() -> String {
    let words = std::env::args_os().skip(1);
    let words = words.map(|word| quoted(&word.to_string_lossy()));
    ["uncork".to_owned()].into_iter().chain(words).collect::<Vec<_>>().join(" ")
}
