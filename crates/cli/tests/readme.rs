//! The documentation's commands, run as they stand; where their output is shown, it must be that.

use std::path::Path;
use std::process::Command;

/// The `console` blocks of a page: each command with the lines shown below it.
fn commands(page: &str) -> Vec<(String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(page);
    let text = std::fs::read_to_string(path).expect("the page exists");
    let mut commands: Vec<(String, String)> = Vec::new();
    let mut in_block = false;
    for line in text.lines() {
        match (in_block, line) {
            (false, _) => in_block = line == "```console",
            (true, "```") => in_block = false,
            (true, _) => match (line.strip_prefix("$ "), commands.last_mut()) {
                (Some(command), _) => commands.push((command.to_owned(), String::new())),
                (None, Some((_, output))) => output.extend([line, "\n"]),
                (None, None) => panic!("{page} shows output without a command: {line}"),
            },
        }
    }
    commands
}

/// What cargo would run, or the installed binary; other commands are not ours to run here.
fn arguments(command: &str) -> Option<&str> {
    command.strip_prefix("cargo run --release -- ").or_else(|| command.strip_prefix("uncork "))
}

#[test]
fn the_documentation_shows_what_happens() {
    for page in ["README.md", "docs/fidelity.md"] {
        let commands = commands(page);
        assert!(!commands.is_empty(), "{page}");
        let ours = commands.iter().filter_map(|(command, out)| Some((arguments(command)?, out)));
        for (arguments, shown) in ours {
            let mut uncork = Command::new(env!("CARGO_BIN_EXE_uncork"));
            let output = uncork.args(arguments.split_whitespace()).output().expect("runs");
            let printed = String::from_utf8(output.stdout).expect("text");
            assert!(output.status.success(), "{page}: {arguments}");
            assert!(!printed.is_empty(), "{page}: {arguments}");
            if !shown.is_empty() {
                assert_eq!(printed, *shown, "{page}: {arguments}");
            }
        }
    }
}

/// `.ci/run` runs the README's own test command.
#[test]
fn the_readme_tells_how_to_test() {
    assert!(commands("README.md").iter().any(|(command, _)| command == "cargo test --workspace"));
}
