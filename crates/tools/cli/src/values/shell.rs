//! Commands as a shell reads them.

/// The given command line, quoted for a shell.
pub(crate) fn command_line() -> String {
    let words = std::env::args_os().skip(1);
    let words = words.map(|word| quoted(&word.to_string_lossy()));
    ["uncork".to_owned()].into_iter().chain(words).collect::<Vec<_>>().join(" ")
}

/// `word` quoted as a single word for a POSIX shell.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./,:=+%@".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}
