//! Tests wait for conditions with a limit. A fixed sleep is too short on a busy machine and too
//! long on others.

use std::fs;
use std::path::{Path, PathBuf};

/// Test code below `directory`: integration tests, `tests.rs` files, and the part of other files after
/// `#[cfg(test)]`.
fn test_code(directory: &Path, found: &mut Vec<(PathBuf, usize, String)>) {
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            test_code(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let text = fs::read_to_string(&path).expect("UTF-8");
            let is_test = path.iter().any(|part| part == "tests" || part == "tests.rs");
            let tests = if is_test { Some(0) } else { text.find("#[cfg(test)]") };
            if let Some(start) = tests {
                let line = text[..start].lines().count();
                found.push((path, line, text[start..].to_owned()));
            }
        }
    }
}

fn is_sleep(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    code.contains("thread::sleep") || code.contains("time::sleep")
}

/// `crate: file:line` of each sleep in the tests of a crate.
fn sleeps(of: &Path) -> Vec<String> {
    let mut files = Vec::new();
    for part in ["src", "tests"].map(|part| of.join(part)) {
        if part.is_dir() {
            test_code(&part, &mut files);
        }
    }
    let places = files.iter().flat_map(|(path, first, text)| {
        let lines = text.lines().enumerate().filter(|(_, line)| is_sleep(line));
        lines.map(move |(at, _)| format!("{}:{}", path.display(), first + at + 1))
    });
    places.collect()
}

/// The directories in `path`.
fn entries(path: &Path) -> Vec<PathBuf> {
    let entries =
        fs::read_dir(path).expect("a directory").map(|entry| entry.expect("an entry").path());
    entries.filter(|path| path.is_dir()).collect()
}

#[test]
fn tests_wait_for_conditions_and_never_sleep() {
    let group = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a group of crates");
    let groups = entries(group.parent().expect("the groups"));
    let mut wrong = Vec::new();
    for path in groups.iter().flat_map(|group| entries(group)) {
        if !path.ends_with("testkit") {
            wrong.extend(sleeps(&path));
        }
    }
    assert!(
        wrong.is_empty(),
        "fixed sleeps; use wait_until, wait_for or pause of uncork-testkit:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn a_sleep_is_found_and_a_comment_is_not() {
    assert!(is_sleep("    std::thread::sleep(Duration::from_secs(1));"));
    assert!(is_sleep("use tokio::time::sleep;"));
    assert!(!is_sleep("// thread::sleep would be too short"));
    assert!(!is_sleep("pause(Duration::from_secs(1), \"a client that stalls\");"));
}
