//! The root of the command line: it lists the commands.

use std::ffi::OsString;

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

use crate::compare::CompareArgs;
use crate::lab::LabArgs;
use crate::{exit, left_out};

const EXAMPLES: &str = "\
Examples:
  uncork compare --rate 100mbit --loss 0.1% -o report
  uncork lab list
  uncork lab run litespeed-loss -o report";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  uncork completions bash > ~/.local/share/bash-completion/completions/uncork
  uncork completions zsh > ~/.zfunc/_uncork";

const MAN_EXAMPLES: &str = "\
Examples:
  uncork man | man -l -
  uncork man lab run | man -l -";

/// First the purpose, then examples.
const HELP: &str = "\
{about-with-newline}
{before-help}{usage-heading} {usage}

{all-args}{after-help}";

/// Maximum width of the help: longer lines are hard to read.
const COLUMNS: usize = 100;

/// The command line.
pub(crate) fn definition() -> clap::Command {
    fn with_template(command: clap::Command) -> clap::Command {
        command.help_template(HELP).mut_subcommands(with_template)
    }
    with_template(left_out::list(Cli::command())).max_term_width(COLUMNS)
}

/// Find out whether BBR would help your users, prove it, and ship it
#[derive(Debug, Parser)]
#[command(version = left_out::version(), max_term_width = 100)]
#[command(before_help = EXAMPLES, after_help = exit::STATUS)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Compare controllers on a path: completion time, goodput, delay, retransmissions
    Compare(Box<CompareArgs>),
    /// Run scenarios: files that describe paths, traffic, variations and thresholds
    Lab(LabArgs),
    #[cfg(feature = "full")]
    #[command(flatten)]
    Full(crate::full::Command),
    /// Design and analyse experiments: did it help, for whom? (Python)
    #[command(disable_help_flag = true)]
    Experiment {
        /// Arguments: see uncork experiment --help
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
        arguments: Vec<OsString>,
    },
    /// Learn which controller for which network, from experiments (Python)
    #[command(disable_help_flag = true)]
    Learn {
        /// Arguments: see uncork learn --help
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
        arguments: Vec<OsString>,
    },
    /// Print shell completions
    #[command(before_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// Shell
        shell: Shell,
    },
    /// Print a manual page
    #[command(before_help = MAN_EXAMPLES)]
    Man {
        /// Command to describe: compare, lab run
        command: Vec<String>,
    },
}

#[cfg(test)]
mod tests {
    use clap::Arg;
    use clap::error::ErrorKind;

    use super::*;
    use crate::manual::examples;

    #[test]
    fn definition_is_consistent() {
        Cli::command().debug_assert();
    }

    /// Python prints the help of `experiment` and `learn`.
    #[test]
    fn every_command_has_an_example_in_its_help() {
        let mut commands = vec![(String::new(), Cli::command())];
        let mut lacking = Vec::new();
        while let Some((parent, command)) = commands.pop() {
            let name = format!("{parent} {}", command.get_name()).trim().to_owned();
            let is_of_python = command.is_disable_help_flag_set();
            if !is_of_python && !examples(&command).iter().any(|it| it.contains(&*name)) {
                lacking.push(name.clone());
            }
            let shown = command.get_subcommands().filter(|it| !it.is_hide_set());
            commands.extend(shown.map(|it| (name.clone(), it.clone())));
        }
        assert!(lacking.is_empty(), "no example of {lacking:?}");
    }

    /// Defaults are texts that are only parsed when the command runs.
    #[test]
    fn every_default_is_a_valid_value() {
        let mut commands = vec![Cli::command()];
        let mut defaults = 0;
        while let Some(command) = commands.pop() {
            commands.extend(command.get_subcommands().cloned());
            defaults += command.get_arguments().flat_map(Arg::get_default_values).count();
            let name = command.get_name().to_owned();
            // Missing arguments are reported only after all defaults have been parsed.
            if let Err(error) = command.try_get_matches_from([&name]) {
                let is_parsed = matches!(
                    error.kind(),
                    ErrorKind::MissingRequiredArgument
                        | ErrorKind::MissingSubcommand
                        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
                );
                assert!(is_parsed, "{name}: {error}");
            }
        }
        assert!(defaults > 40, "{defaults}");
    }
}
