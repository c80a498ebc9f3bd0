//! Holds docs/reference/cli.md to the definition of the command line. `UPDATE_DOCS=1 cargo test -p uncork reference` writes it.

use std::fmt::Write;
use std::path::Path;

use clap::{Arg, Command};

use crate::command::definition;
use crate::manual::examples;

const HEAD: &str = "\
# Command line

Every command of `uncork`, with its options. This page is generated from the program; `uncork COMMAND --help` prints the same.
The options of `uncork experiment` and `uncork learn` are in [experiment and learn](cli-python.md). Exit statuses: see
[exit statuses](exit-statuses.md).
";

/// The page: a section for each command, in the order of the help.
fn page() -> String {
    let mut root = definition();
    root.build();
    let mut page = HEAD.to_owned();
    section(&root, &mut page);
    page
}

fn section(command: &Command, page: &mut String) {
    let name = command.get_bin_name().unwrap_or(command.get_name());
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    write!(page, "\n## {name}\n\n{}\n", paragraph(&about)).expect("memory");
    let examples = examples(command);
    if !examples.is_empty() {
        writeln!(page, "\n```sh\n{}\n```", examples.join("\n")).expect("memory");
    }
    table("argument", command.get_positionals(), page);
    let is_shown = |argument: &&Arg| !argument.is_hide_set() && argument.get_id() != "help";
    table("option", command.get_opts().chain(flags(command)).filter(is_shown), page);
    if let Some(after) = command.get_after_long_help().or(command.get_after_help()) {
        write!(page, "\n{}\n", paragraph(&after.to_string())).expect("memory");
    }
    let is_documented = |it: &&Command| !it.is_hide_set() && it.get_name() != "help";
    command.get_subcommands().filter(is_documented).for_each(|it| section(it, page));
}

/// The options without a value.
fn flags(command: &Command) -> impl Iterator<Item = &Arg> {
    let takes_value = |argument: &Arg| argument.get_action().takes_values();
    command.get_arguments().filter(move |it| !it.is_positional() && !takes_value(it))
}

fn table<'a>(kind: &str, arguments: impl Iterator<Item = &'a Arg>, page: &mut String) {
    let mut rows = arguments.map(row).peekable();
    if rows.peek().is_some() {
        write!(page, "\n| {kind} | default | meaning |\n|---|---|---|\n").expect("memory");
        page.extend(rows);
    }
}

fn row(argument: &Arg) -> String {
    let usage = argument.to_string();
    let defaults = argument.get_default_values().iter();
    let default = defaults.map(|it| it.to_string_lossy()).collect::<Vec<_>>().join(", ");
    let is_switch = !argument.get_action().takes_values() || default.is_empty();
    let default = if is_switch { String::new() } else { format!("`{default}`") };
    let help = argument.get_long_help().or(argument.get_help());
    let help = help.map(ToString::to_string).unwrap_or_default();
    format!("| `{}` | {default} | {} |\n", cell(&usage), cell(&paragraph(&help)))
}

/// Text on one line, with nothing that Markdown or HTML would interpret.
fn paragraph(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    text.replace('<', "\\<").replace('*', "\\*").replace('_', "\\_")
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[test]
fn the_reference_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/reference/cli.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, page()).expect("the page can be written");
    }
    let shown = std::fs::read_to_string(&path).expect("the page exists");
    assert!(shown == page(), "run UPDATE_DOCS=1 cargo test -p uncork reference");
}
