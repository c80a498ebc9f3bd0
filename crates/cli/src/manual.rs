//! Shell completions and manual pages, made of the command line's own definition.

use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::args::Cli;
use crate::failure::Failure;
use crate::stdout;

/// Prints the completions for `shell`.
pub(crate) fn completions(shell: Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "uncork", &mut script);
    stdout::write(&script)
}

/// Prints the manual page of `uncork`, or of the command that `words` name.
pub(crate) fn man(words: &[String]) -> Result<(), Failure> {
    let mut page = Cli::command();
    page.build();
    for word in words {
        page = page.find_subcommand(word).cloned().ok_or_else(|| {
            Failure::value("[COMMAND]...", words.join(" "), format!("write {}", commands(&page)))
        })?;
    }
    let mut roff = Vec::new();
    Man::new(page).render(&mut roff).map_err(|error| Failure::stdout(&error))?;
    stdout::write(&roff)
}

/// The commands of `page`: `compare, lab or man`.
fn commands(page: &Command) -> String {
    let names: Vec<&str> = page.get_subcommands().map(Command::get_name).collect();
    match names.iter().copied().filter(|name| *name != "help").collect::<Vec<_>>().split_last() {
        None => "nothing after it".to_owned(),
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
    }
}
