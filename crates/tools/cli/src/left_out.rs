//! What a build without the feature `full` lacks. The help lists it; running it fails, with the command that builds it.

use std::ffi::OsString;

use clap::{Arg, ArgMatches, Command, value_parser};
use uncork_lab::Engine;

use crate::failure::Failure;

/// The remedy.
const BUILD: &str = "cargo build --release --features full";

/// A command, and its purpose as in the full program.
type LeftOut = (&'static str, &'static str);

const COMMANDS: [LeftOut; 13] = [
    ("emu", "Run a command behind an emulated path, in real time"),
    (
        "policy",
        "Check and explain policies, which choose a controller for each connection (docs/reference/policy.md)",
    ),
    ("serve", "Serve files over HTTP with the congestion control that you choose"),
    (
        "records",
        "Make roll-ups of flow records, merge them, and ship them to a store (docs/reference/rollups.md)",
    ),
    (
        "play",
        "Measure HTTP downloads and music playback as a client sees them (docs/reference/play.md)",
    ),
    ("host", "Look after the congestion control of this host (docs/reference/host.md)"),
    (
        "kernel",
        "Run the library's controllers in the Linux kernel, by BPF (docs/reference/kernel.md)",
    ),
    (
        "steer",
        "Give the connections of any server controllers by a policy, by BPF (docs/reference/steer.md)",
    ),
    ("agent", "Keep a fleet's policy active on this host, from a store (docs/reference/fleet.md)"),
    (
        "fleet",
        "Roll policies out to many hosts: signed versions in a store, in stages (docs/reference/fleet.md)",
    ),
    (
        "status",
        "Show what of uncork is active on this host: settings, controllers, policies, tests, servers",
    ),
    (
        "lab from-records",
        "Make a scenario of the records of a server: the paths of its clients, by autonomous system",
    ),
    (
        "lab internet",
        "A simulated Internet: networks, users and days; the records of a server in it under a policy, and what each controller \
         is truly worth there",
    ),
];
/// Commands that only Linux has.
const OF_LINUX: [&str; 6] = ["play", "kernel", "steer", "agent", "fleet", "status"];

/// The version, and whether it is of the full program.
pub(crate) fn version() -> String {
    let without = if cfg!(feature = "full") { "" } else { ", without the feature full" };
    format!("{}{without}", uncork_lab::VERSION)
}

/// `root` with the commands that this build lacks.
pub(crate) fn list(root: Command) -> Command {
    if cfg!(feature = "full") { root } else { listed(root) }
}

/// Whether this build has the command that is run.
pub(crate) fn check(matches: &ArgMatches) -> Result<(), Failure> {
    check_words(&names(matches))
}

/// Whether this build has the command that `words` name.
pub(crate) fn check_words(words: &[impl AsRef<str>]) -> Result<(), Failure> {
    if cfg!(feature = "full") { Ok(()) } else { refuse(words) }
}

/// Whether this build has `engine`.
pub(crate) fn check_engine(engine: Engine) -> Result<(), Failure> {
    if engine.is_built() { Ok(()) } else { Err(lacking(&format!("--on {engine}"))) }
}

/// This build has no object stores. `address` names one.
#[cfg(not(all(feature = "full", target_os = "linux")))]
pub(crate) fn object_stores(address: &str) -> Failure {
    // What follows the scheme may have a credential.
    let scheme = address.split("://").next().unwrap_or_default();
    if cfg!(feature = "full") {
        return Failure::Environment(format!("`{scheme}://` needs Linux; use a directory"));
    }
    lacking(&format!("{scheme}://"))
}

fn commands() -> impl Iterator<Item = LeftOut> {
    let is_here = |(name, _): &LeftOut| cfg!(target_os = "linux") || !OF_LINUX.contains(name);
    COMMANDS.into_iter().filter(is_here)
}

fn listed(root: Command) -> Command {
    commands().fold(root, |root, (name, about)| match name.split_once(' ') {
        Some((parent, name)) => {
            root.mut_subcommand(parent, |parent| parent.subcommand(listing(name, about)))
        }
        None => root.subcommand(listing(name, about)),
    })
}

/// A command in the help, which takes any arguments.
fn listing(name: &'static str, about: &str) -> Command {
    let arguments = Arg::new("arguments").num_args(0..).value_parser(value_parser!(OsString));
    let arguments = arguments.trailing_var_arg(true).allow_hyphen_values(true).hide(true);
    Command::new(name)
        .about(format!("{about} [not in this build]"))
        .after_help(format!("Build it: {BUILD}"))
        .disable_help_flag(true)
        .arg(arguments)
}

/// The command that is run, and that within it.
fn names(matches: &ArgMatches) -> Vec<&str> {
    let Some((first, inner)) = matches.subcommand() else { return Vec::new() };
    std::iter::once(first).chain(inner.subcommand_name()).collect()
}

fn refuse(words: &[impl AsRef<str>]) -> Result<(), Failure> {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    let is_named = |name: &str| words.starts_with(&name.split(' ').collect::<Vec<_>>());
    match commands().find(|(name, _)| is_named(name)) {
        Some((name, _)) => Err(lacking(&format!("uncork {name}"))),
        None => Ok(()),
    }
}

fn lacking(what: &str) -> Failure {
    Failure::Environment(format!(
        "`{what}` is not in this build, which has the simulator alone\nhelp: {BUILD}"
    ))
}

#[cfg(test)]
mod tests {
    use clap::Subcommand;
    use uncork_testkit::assert_message;

    use super::*;

    /// The commands that only the full program has, with their purposes.
    fn full() -> Vec<(String, String)> {
        let root = crate::full::Command::augment_subcommands(Command::new("uncork"));
        let lab = crate::full::lab::LabCommand::augment_subcommands(Command::new("lab"));
        let line = |prefix: &str, command: &Command| {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            (format!("{prefix}{}", command.get_name()), about)
        };
        let lab = lab.get_subcommands().map(|command| line("lab ", command));
        root.get_subcommands().map(|command| line("", command)).chain(lab).collect()
    }

    #[test]
    fn each_command_of_the_full_program_is_listed() {
        let mut listed: Vec<(String, String)> =
            commands().map(|(name, about)| (name.to_owned(), about.to_owned())).collect();
        let mut full = full();
        listed.sort();
        full.sort();
        assert_eq!(listed, full);
    }

    #[test]
    fn command_that_is_left_out_is_refused_with_any_arguments() {
        let root = listed(Command::new("uncork").subcommand(Command::new("lab")));
        let mut cases = 0;
        for (name, _) in commands() {
            for rest in
                ["", "--help", "--rate 1mbit -- true", "check policy.toml --color never", "-h"]
            {
                let words = format!("uncork {name} {rest}");
                let matches = root.clone().try_get_matches_from(words.split_whitespace());
                let Err(Failure::Environment(message)) = refuse(&names(&matches.unwrap())) else {
                    panic!("{words}")
                };
                assert_message!(name, message);
                cases += 1;
            }
        }
        assert!(cases >= 30, "{cases}");
    }

    #[test]
    fn other_commands_are_not_refused() {
        let others: [&[&str]; 4] = [&[], &["compare"], &["lab"], &["lab", "run"]];
        assert!(others.into_iter().all(|words| refuse(words).is_ok()));
    }
}
