//! Runs the documentation's commands unmodified and compares their output with the output shown.
//! `UPDATE_DOCS=1 cargo test -p uncork --test all readme` updates the pages.

use std::path::{Path, PathBuf};
use std::process::Command;

fn page(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").join(name)
}

/// A command in a page's `console` blocks, with the lines shown below it.
struct Shown {
    command: String,
    output: String,
}

fn commands(name: &str) -> Vec<Shown> {
    let text = std::fs::read_to_string(page(name)).expect("the page exists");
    let mut commands: Vec<Shown> = Vec::new();
    let mut in_block = false;
    for line in text.lines() {
        match (in_block, line) {
            (false, _) => in_block = line == "```console",
            (true, "```") => in_block = false,
            (true, _) => match (line.strip_prefix("$ "), commands.last_mut()) {
                (Some(command), _) => {
                    commands.push(Shown { command: command.to_owned(), output: String::new() });
                }
                (None, Some(shown)) => shown.output.extend([line, "\n"]),
                (None, None) => panic!("{name} shows output without a command: {line}"),
            },
        }
    }
    commands
}

/// The output of the command; `None` if it is not run by this test.
fn run(command: &str) -> Option<String> {
    let ours = ["cargo run --release -- ", "uncork "];
    let arguments = ours.iter().find_map(|prefix| command.strip_prefix(prefix))?;
    let mut uncork = Command::new(env!("CARGO_BIN_EXE_uncork"));
    let arguments = arguments.split_whitespace();
    let output = uncork.args(arguments).current_dir(page(".")).output().expect("runs");
    assert!(output.status.success(), "{command}");
    Some(String::from_utf8(output.stdout).expect("text"))
}

fn update(name: &str, shown: &str, printed: &str) {
    let text = std::fs::read_to_string(page(name)).expect("the page exists");
    std::fs::write(page(name), text.replacen(shown, printed, 1)).expect("the page can be written");
}

/// The pages with commands: all guides, and three pages that must have some.
fn pages() -> Vec<String> {
    let guides = ["docs/start", "docs/howto"].into_iter().flat_map(|folder| {
        let files = std::fs::read_dir(page(folder)).expect("the folder exists");
        let names = files.map(|file| file.expect("a file").file_name().into_string());
        names.map(move |name| format!("{folder}/{}", name.expect("UTF-8")))
    });
    let mut pages = ["README.md", "docs/evidence/fidelity.md", "docs/reference/from-logs.md"]
        .map(str::to_owned)
        .to_vec();
    for name in &pages {
        assert!(!commands(name).is_empty(), "{name} shows no command");
    }
    pages.extend(guides.filter(|name| Path::new(name).extension().is_some_and(|it| it == "md")));
    pages
}

#[test]
fn documentation_is_current() {
    let is_update = std::env::var_os("UPDATE_DOCS").is_some();
    for name in &pages() {
        for Shown { command, output } in commands(name) {
            let Some(printed) = run(&command) else { continue };
            assert!(!printed.is_empty(), "{name}: {command}");
            if is_update && !output.is_empty() {
                update(name, &output, &printed);
            } else if !output.is_empty() {
                assert_eq!(printed, output, "{name}: {command}");
            }
        }
    }
}

/// `.ci/run` runs the README's own test command.
#[test]
fn readme_shows_how_to_test() {
    let is_test = |shown: &Shown| shown.command == "cargo test --workspace";
    assert!(commands("README.md").iter().any(is_test));
}
