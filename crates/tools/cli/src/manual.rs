//! Shell completions and manual pages, generated from the definition of the command line.

use std::io::{self, Write};

use clap::Command;
use clap::builder::PossibleValuesParser;
use clap_complete::Shell;
use clap_mangen::Man;
use uncork_cc::Algorithm;
use uncork_lab::{Builtin, Suite};

use crate::command::definition;
use crate::failure::Failure;
use crate::{left_out, stdout};

/// Prints the completions for `shell`.
pub(crate) fn completions(shell: Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut with_values(definition()), "uncork", &mut script);
    stdout::data(&script)
}

/// `root` with the values that shells can offer: controllers and built-in scenarios. For completions only:
/// the arguments take more than these.
fn with_values(root: Command) -> Command {
    let controllers = PossibleValuesParser::new(Algorithm::ALL.map(Algorithm::name));
    let suites: Vec<&str> = Suite::all().map(|suite| suite.name).collect();
    let builtins = Builtin::all().iter().map(|builtin| builtin.name);
    let scenarios = PossibleValuesParser::new(builtins.chain(suites));
    let with = |command: Command, id: &str, values: &PossibleValuesParser| {
        let values = values.clone();
        command.mut_arg(id, |argument| argument.value_parser(values))
    };
    let root = root
        .mut_subcommand("compare", |compare| with(compare, "cc", &controllers))
        .mut_subcommand("lab", |lab| {
            lab.mut_subcommand("run", |run| with(run, "scenarios", &scenarios))
                .mut_subcommand("show", |show| with(show, "name", &scenarios))
                .mut_subcommand("agree", |agree| with(agree, "scenario", &scenarios))
        });
    #[cfg(feature = "full")]
    let root = root
        .mut_subcommand("serve", |serve| with(serve, "quic_cc", &controllers))
        .mut_subcommand("emu", |emu| with(with(emu, "scenario", &scenarios), "up", &scenarios));
    root
}

/// Prints the manual page of `uncork`, or of the subcommand that `words` name.
pub(crate) fn man(words: &[String]) -> Result<(), Failure> {
    left_out::check_words(words)?;
    let mut page = definition();
    page.build();
    for word in words {
        page = page.find_subcommand(word).cloned().ok_or_else(|| {
            let remedy = format!("write {}", commands(&page));
            Failure::value("[COMMAND]...", words.join(" "), remedy)
        })?;
    }
    let mut roff = Vec::new();
    render(page, &mut roff).map_err(|error| Failure::Environment(error.to_string()))?;
    stdout::data(&roff)
}

/// The commands of the examples in the help.
pub(crate) fn examples(page: &Command) -> Vec<String> {
    let help = page.get_before_help().map(ToString::to_string).unwrap_or_default();
    let lines = help.lines().filter(|line| line.starts_with(' '));
    lines.map(|line| line.trim().to_owned()).collect()
}

/// Writes the page in roff, with the examples of the help in a section of their own.
fn render(page: Command, roff: &mut Vec<u8>) -> io::Result<()> {
    let examples = examples(&page);
    let has_commands = page.has_subcommands();
    let has_more = page.get_after_long_help().or(page.get_after_help()).is_some();
    let has_version = page.get_long_version().or(page.get_version()).is_some();
    let man = Man::new(page);
    man.render_title(roff)?;
    man.render_name_section(roff)?;
    man.render_synopsis_section(roff)?;
    man.render_description_section(roff)?;
    if !examples.is_empty() {
        writeln!(roff, ".SH EXAMPLES\n.nf")?;
        for line in examples {
            writeln!(roff, "{}", line.replace('\\', "\\e").replace('-', "\\-"))?;
        }
        writeln!(roff, ".fi")?;
    }
    man.render_options_section(roff)?;
    if has_commands {
        man.render_subcommands_section(roff)?;
    }
    if has_more {
        man.render_extra_section(roff)?;
    }
    if has_version {
        man.render_version_section(roff)?;
    }
    Ok(())
}

/// The subcommands of `page`: `compare, lab or man`.
fn commands(page: &Command) -> String {
    let names: Vec<&str> = page.get_subcommands().map(Command::get_name).collect();
    match names.iter().copied().filter(|name| *name != "help").collect::<Vec<_>>().split_last() {
        None => "nothing after it".to_owned(),
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
    }
}
