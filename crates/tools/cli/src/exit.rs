//! How a command ends: what it prints about a failure, and its exit status.

use std::process::ExitCode;

use clap::builder::StyledStr;
use clap::error::ErrorKind;
use uncork_terminal::Style;

use crate::failure::Failure;
use crate::values::Color;
use crate::{color, stderr, stdout};

/// The statuses, in the help of a command.
pub(crate) const STATUS: &str = "\
Exit status: 0 done, 1 a threshold is missed, 2 wrong usage, 3 not possible on this machine (such as an output \
directory that cannot be written), 5 a bug, 130 interrupted.";

/// The statuses, in the help of `uncork lab`.
pub(crate) const LAB_STATUS: &str = "\
Exit status: 0 done, 1 a threshold of a scenario is missed, 2 wrong usage or a wrong scenario, 3 the \
environment cannot do it (such as an output directory that cannot be written), 5 a bug, 130 \
interrupted; what was finished by then is kept, if there is an output directory.";

/// Exit status when a threshold is missed.
const MISSED: u8 = 1;
/// Exit status for wrong usage.
const USAGE: u8 = 2;
/// Exit status when this machine cannot do it.
const ENVIRONMENT: u8 = 3;
/// Exit status for a bug of this program.
const BUG: i32 = 5;
/// Exit status after Ctrl-C, as in shells.
pub(crate) const INTERRUPTED: u8 = 130;

/// Prints the error to stderr and returns the exit status.
pub(crate) fn report(failure: Failure) -> ExitCode {
    match failure {
        Failure::Clap(error) => {
            let text = error.render();
            if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
                return help(&text);
            }
            let is_styled = color::on_stderr(Color::Auto);
            let text = if is_styled { text.ansi().to_string() } else { text.to_string() };
            stderr::styled(without_advice(&text));
            USAGE.into()
        }
        Failure::Shown(message) => {
            stderr::styled(&format!("{message}\n"));
            USAGE.into()
        }
        Failure::Value(message) | Failure::Usage(message) => error(&message, USAGE),
        Failure::Missed(message) => error(&message, MISSED),
        Failure::Environment(message) => error(&message, ENVIRONMENT),
        Failure::Interrupted(message) => {
            eprintln!("interrupted: {message}");
            INTERRUPTED.into()
        }
        #[cfg(feature = "full")]
        Failure::Status(status) => status.into(),
    }
}

/// An error of the parser without its last sentence, which points to `--help`: the error itself has the remedy.
fn without_advice(text: &str) -> &str {
    text.find("\nFor more information").map_or(text, |end| &text[..end])
}

/// Prints help, which is data of its command.
fn help(text: &StyledStr) -> ExitCode {
    let is_styled = color::style(Color::Auto) == Style::Ansi;
    let text = if is_styled { text.ansi().to_string() } else { text.to_string() };
    stdout::styled(&text).map_or_else(report, |()| ExitCode::SUCCESS)
}

fn error(message: &str, status: u8) -> ExitCode {
    eprintln!("error: {message}");
    status.into()
}

/// Makes a panic in any thread end the process with the status for a bug.
pub(crate) fn report_bugs() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        print(panic);
        eprintln!("error: this is a bug in uncork; please report it with the command that you ran");
        std::process::exit(BUG);
    }));
}
