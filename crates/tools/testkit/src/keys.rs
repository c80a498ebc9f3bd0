//! The keys of a file as a table of its reference page.

use std::path::Path;

use crate::assert_generated;

/// Asserts that the part `section` of the page is the table of these keys: name, meaning, default. `UPDATE_DOCS=1` writes it.
/// Anchors are `section-name`.
///
/// # Panics
///
/// As [`assert_generated`].
#[track_caller]
pub fn assert_keys<'k>(
    page: &Path,
    section: &str,
    command: &str,
    keys: impl IntoIterator<Item = (&'k str, &'k str, &'k str)>,
) {
    let keys: Vec<_> = keys.into_iter().collect();
    let has_defaults = keys.iter().any(|(.., default)| !default.is_empty());
    let row = |(name, meaning, default): &(&str, &str, &str)| {
        let key = format!("<a id=\"{section}-{name}\"></a>`{name}`");
        if has_defaults {
            format!("| {key} | {meaning} | {default} |\n")
        } else {
            format!("| {key} | {meaning} |\n")
        }
    };
    let head = if has_defaults {
        "| key | meaning | default |\n|---|---|---|\n"
    } else {
        "| key | meaning |\n|---|---|\n"
    };
    let rows: String = keys.iter().map(row).collect();
    assert_generated(page, section, command, &format!("{head}{rows}"));
}
