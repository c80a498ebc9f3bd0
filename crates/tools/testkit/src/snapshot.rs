//! Texts that are kept in a file.

use std::path::Path;

/// Asserts that `text` is what the file contains. `UPDATE_DOCS=1` writes the file instead.
///
/// # Panics
///
/// If they differ (shows the first line that does), or if the file cannot be written.
#[track_caller]
pub fn assert_snapshot(file: &Path, text: &str) {
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(file, text).expect("the snapshot is writable");
    }
    let known = std::fs::read_to_string(file).unwrap_or_default();
    let line = |text: &str, index| text.lines().nth(index).map(str::to_owned);
    let lines = text.lines().count().max(known.lines().count());
    for index in 0..lines {
        let (new, old) = (line(text, index), line(&known, index));
        assert_eq!(new, old, "{}:{}: UPDATE_DOCS=1 writes it", file.display(), index + 1);
    }
}
