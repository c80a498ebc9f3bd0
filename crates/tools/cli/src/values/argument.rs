//! Arguments of the command line, by their names in the code.

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command};

/// Whether the option `id` was on the command line.
pub(crate) fn is_given(matches: &ArgMatches, id: &str) -> bool {
    matches.value_source(id) == Some(ValueSource::CommandLine)
}

/// The argument `id` of a command as shown in its help, such as `--rate <RATE>`.
pub(crate) fn shown<A: Args>(id: &str) -> String {
    let mut command = A::augment_args(Command::new("uncork"));
    command.build();
    let mut arguments = command.get_arguments();
    arguments.find(|argument| argument.get_id() == id).map_or_else(String::new, Arg::to_string)
}

/// The arguments of a command that `words` give.
#[cfg(test)]
pub(crate) fn parsed<'a, A: Args>(
    words: impl IntoIterator<Item = &'a str>,
) -> Result<(A, ArgMatches), clap::Error> {
    let command = A::augment_args(Command::new("uncork").no_binary_name(true));
    let matches = command.try_get_matches_from(words)?;
    Ok((A::from_arg_matches(&matches)?, matches))
}
