//! Which rule of each specification is implemented where, and which test covers it.
//!
//! The rules are in `spec/*.txt`. A comment above an item lists the rules it implements. A comment
//! directly above the `fn` of a test, below its attributes, lists the rules it tests:
//!
//! ```text
//! //= bbr-06 5.3.2-1 5.3.2-2
//! const fn item() {}
//!
//! #[test]
//! //= bbr-06 5.3.2-1 test
//! fn behaviour() {}
//! ```
//!
//! Each rule has both, or a reason why not. `SPEC_COVERAGE.md` is the resulting table;
//! `UPDATE_DOCS=1 cargo test -p uncork-cc --test spec_coverage` rewrites it.

mod coverage;

use std::fs;
use std::path::{Path, PathBuf};

use coverage::{Spec, Tag, problems, render};

/// Directories with tags, relative to this crate.
const SOURCES: [&str; 4] = ["src", "tests", "../../lab/sim/src", "../../lab/sim/tests"];

fn in_crate(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All files with this extension in a directory and its subdirectories, in sorted order.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder exists");
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| entry.expect("it can be read").path()).collect();
    paths.sort();
    let mut found = Vec::new();
    for path in paths {
        if path.is_dir() {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|ending| ending == extension) {
            found.push(path);
        }
    }
    found
}

/// The name of a source file in the table, relative to `src` of this crate or to `crates`.
fn shown(path: &Path) -> String {
    let text = path.to_str().expect("paths are text").replace('\\', "/");
    let root = in_crate("").to_str().expect("paths are text").replace('\\', "/");
    let text = text.strip_prefix(&root).unwrap_or(&text);
    let text = text.strip_prefix("src/").unwrap_or(text);
    text.strip_prefix("../../").unwrap_or(text).to_owned()
}

fn specs() -> Vec<Spec> {
    let parse = |path: PathBuf| {
        let key = path.file_stem().and_then(|stem| stem.to_str()).expect("a name");
        Spec::parse(key, &read(&path)).unwrap_or_else(|error| panic!("{error}"))
    };
    files(&in_crate("spec"), "txt").into_iter().map(parse).collect()
}

fn tags() -> Vec<Tag> {
    let paths = SOURCES.iter().flat_map(|folder| files(&in_crate(folder), "rs"));
    let scan = |path: PathBuf| {
        Tag::scan(&shown(&path), &read(&path)).unwrap_or_else(|error| panic!("{error}"))
    };
    paths.flat_map(scan).collect()
}

#[test]
fn every_rule_has_code_and_test_or_a_reason_and_the_table_is_current() {
    let (specs, tags) = (specs(), tags());
    let problems = problems(&specs, &tags);
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    let (page, table) = (in_crate("SPEC_COVERAGE.md"), render(&specs, &tags));
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&page, table).expect("the page can be written");
    } else {
        let is_current = fs::read_to_string(&page).is_ok_and(|page| page == table);
        assert!(
            is_current,
            "SPEC_COVERAGE.md is stale: UPDATE_DOCS=1 cargo test -p uncork-cc --test spec_coverage"
        );
    }
}
