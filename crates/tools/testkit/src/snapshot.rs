//! Texts that are kept in a file, or in a part of one.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Tests of one program run at the same time, and a page has several parts.
static WRITING: Mutex<()> = Mutex::new(());

/// Asserts that `text` is what the page contains between `<!-- generated: NAME by COMMAND -->` and the next `<!-- end -->`.
/// `UPDATE_DOCS=1` writes it.
///
/// # Panics
///
/// If they differ (shows the first line that does), if the markers are missing, or if the page cannot be written.
#[track_caller]
pub fn assert_generated(page: &Path, name: &str, command: &str, text: &str) {
    let _alone = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    let known = std::fs::read_to_string(page).expect("the page exists");
    let marker = format!("<!-- generated: {name} by `{command}` -->\n");
    let (before, rest) = known.split_once(&marker).unwrap_or_else(|| panic!("no {marker}"));
    let (_, after) = rest.split_once("<!-- end -->").expect("the marker of the end");
    assert_snapshot(page, &format!("{before}{marker}\n{text}\n<!-- end -->{after}"));
}

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
