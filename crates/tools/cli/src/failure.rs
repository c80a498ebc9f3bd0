//! Errors as the user sees them, and exit statuses.

use std::fmt::Display;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use clap::builder::StyledStr;
use clap::error::ErrorKind;
use uncork_report::Style;

use crate::args::Color;
use crate::{color, stderr, stdout};

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

/// Why a command ends early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line is wrong, or asks for help.
    Clap(clap::Error),
    /// An argument has an invalid value.
    Value(String),
    /// A file that was given is wrong; the message is complete and shown as it is.
    Shown(String),
    /// Arguments contradict each other.
    Usage(String),
    /// A threshold is missed, or a download failed.
    Missed(String),
    /// This machine cannot do it: a file cannot be read or written, a right is missing.
    Environment(String),
    /// The command that was run ended with this status, and has explained it.
    Status(u8),
    /// Interrupted by the user; the message says what is kept.
    Interrupted(String),
}

impl Failure {
    /// `value` is invalid for `argument` (such as `--rate <RATE>`), for `reason`.
    pub(crate) fn value(argument: &str, value: impl Display, reason: impl Display) -> Self {
        Self::Value(format!("invalid value '{value}' for '{argument}': {reason}"))
    }

    /// The file of `argument` cannot be read. A file that exists but cannot be read is the machine's fault; one
    /// that does not exist, or is not text, the user's.
    pub(crate) fn unreadable(argument: &str, file: &Path, error: &io::Error) -> Self {
        let file = file.display();
        match error.kind() {
            io::ErrorKind::NotFound => Self::value(argument, file, "no such file"),
            io::ErrorKind::InvalidData => Self::value(argument, file, "not UTF-8 text"),
            _ => Self::Environment(format!("cannot read '{file}' for '{argument}': {error}")),
        }
    }

    /// The directory of `--output` cannot be written.
    pub(crate) fn output(directory: &Path, error: &io::Error) -> Self {
        let remedy = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                "make room there, or choose another directory"
            }
            _ => "choose a directory that can be written or created",
        };
        Self::cannot_write(directory, error, remedy)
    }

    /// A run cannot be written to the directory of `--output`; the command `again` runs what is missing.
    pub(crate) fn unkept(directory: &Path, error: &io::Error, again: &str) -> Self {
        let remedy = format!("once that is solved, continue with: {again}");
        Self::cannot_write(directory, error, &remedy)
    }

    fn cannot_write(directory: &Path, error: &io::Error, remedy: &str) -> Self {
        let directory = directory.display();
        Self::Environment(format!(
            "cannot write to '{directory}' of '--output <DIR>': {error}; {remedy}"
        ))
    }

    /// Prints the error to stderr and returns the exit status.
    pub(crate) fn report(self) -> ExitCode {
        match self {
            Self::Clap(error) => {
                let text = error.render();
                if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
                    return help(&text);
                }
                if color::on_stderr(Color::Auto) {
                    stderr::styled(&text.ansi().to_string());
                } else {
                    stderr::styled(&text.to_string());
                }
                USAGE.into()
            }
            Self::Value(message) => {
                eprintln!("error: {message}\n\nFor more information, try '--help'.");
                USAGE.into()
            }
            Self::Shown(message) => {
                stderr::styled(&format!("{message}\n"));
                USAGE.into()
            }
            Self::Usage(message) => error(&message, USAGE),
            Self::Missed(message) => error(&message, MISSED),
            Self::Environment(message) => error(&message, ENVIRONMENT),
            Self::Interrupted(message) => {
                eprintln!("interrupted: {message}");
                INTERRUPTED.into()
            }
            Self::Status(status) => status.into(),
        }
    }
}

/// Prints help, which is data of its command.
fn help(text: &StyledStr) -> ExitCode {
    let is_styled = color::style(Color::Auto) == Style::Ansi;
    let text = if is_styled { text.ansi().to_string() } else { text.to_string() };
    stdout::styled(&text).map_or_else(Failure::report, |()| ExitCode::SUCCESS)
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
