//! A message in a `tests/messages.txt` belongs to a test that exists.

use std::fs;
use std::path::Path;

/// The Rust code below `directory`.
fn code(directory: &Path) -> String {
    let entries = fs::read_dir(directory).expect("a directory");
    let texts = entries.map(|entry| {
        let path = entry.expect("an entry").path();
        match path.extension() {
            _ if path.is_dir() => code(&path),
            Some(ending) if ending == "rs" => fs::read_to_string(&path).expect("UTF-8"),
            _ => String::new(),
        }
    });
    texts.collect()
}

#[test]
fn messages_belong_to_tests_that_exist() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let entries = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten();
    for group in entries(&crates) {
        for folder in entries(&group.path()) {
            let file = folder.path().join("tests/messages.txt");
            let Ok(messages) = fs::read_to_string(&file) else { continue };
            let code = code(&folder.path());
            for key in messages.lines().filter(|line| !line.is_empty() && !line.starts_with(' ')) {
                let test = key.split(' ').next().and_then(|test| test.rsplit("::").next());
                let test = test.expect("a test and a case");
                assert!(code.contains(&format!("fn {test}(")), "{}: {key}", file.display());
            }
        }
    }
}
