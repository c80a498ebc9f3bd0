//! Tables in the documentation that tests measure.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Tests of one binary run at the same time, and a page has several tables.
static WRITING: Mutex<()> = Mutex::new(());

/// Whether the tables are to be written, not compared: `UPDATE_DOCS=1`.
pub(crate) fn is_update() -> bool {
    std::env::var_os("UPDATE_DOCS").is_some()
}

/// A page, by its path from the root of the repository.
pub(crate) fn page(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

pub(crate) fn read(page: &Path) -> String {
    std::fs::read_to_string(page).expect("the page exists")
}

/// Where the lines of a table are, between its marker and the next empty line.
fn place(text: &str, table: &str) -> Range<usize> {
    let marker = format!("<!-- table: {table} -->\n");
    let start = text.find(&marker).unwrap_or_else(|| panic!("no {marker}")) + marker.len();
    let end = text[start..].find("\n\n").map_or(text.len(), |length| start + length);
    start..end
}

/// The lines of a table.
pub(crate) fn shown<'a>(text: &'a str, table: &str) -> &'a str {
    &text[place(text, table)]
}

/// Puts `lines` in the place of a table.
pub(crate) fn write(page: &Path, table: &str, lines: &str) {
    let _alone = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    let mut text = read(page);
    text.replace_range(place(&text, table), lines);
    std::fs::write(page, text).expect("the page can be written");
}

/// The table on the page is what was measured, or is made so.
pub(crate) fn agree(page: &Path, table: &str, lines: &str) {
    if is_update() {
        write(page, table, lines);
    } else {
        assert_eq!(shown(&read(page), table), lines, "{table}: UPDATE_DOCS=1 writes it");
    }
}

/// A row of a table.
pub(crate) fn line(cells: impl IntoIterator<Item = String>) -> String {
    cells.into_iter().fold("|".to_owned(), |line, cell| line + " " + &cell + " |")
}

/// A table: its header, and rows of which each begins with its label.
pub(crate) fn table(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let rule = (0..header.len()).map(|column| if column == 0 { "---" } else { "---:" }.to_owned());
    let lines = [line(header.iter().map(ToString::to_string)), line(rule)];
    lines.into_iter().chain(rows.into_iter().map(line)).collect::<Vec<_>>().join("\n")
}
