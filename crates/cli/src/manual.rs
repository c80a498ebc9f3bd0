//! Shell completions and manual pages, made of the command line's own definition.

use clap::CommandFactory;
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

/// Prints the manual page of `uncork`, or of one of its commands.
pub(crate) fn man(command: Option<&str>) -> Result<(), Failure> {
    let mut root = Cli::command();
    root.build();
    let page = match command {
        None => root,
        Some(name) => root.find_subcommand(name).cloned().ok_or_else(|| {
            Failure::value("[COMMAND]", name, "write compare, completions or man")
        })?,
    };
    let mut roff = Vec::new();
    Man::new(page).render(&mut roff).map_err(|error| Failure::stdout(&error))?;
    stdout::write(&roff)
}
