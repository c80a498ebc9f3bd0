//! What went wrong, as the user sees it.

use std::fmt::Display;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use clap::error::ErrorKind;

/// Exit status when a threshold is missed.
const MISSED: u8 = 1;
/// Exit status for wrong usage.
const USAGE: u8 = 2;
/// Exit status when the environment cannot do it.
const ENVIRONMENT: u8 = 3;
/// Exit status for a bug of this program.
const BUG: i32 = 5;
/// Exit status after Ctrl-C, as shells have it.
pub(crate) const INTERRUPTED: u8 = 130;

/// Why a command ends early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line is wrong, or asks for help.
    Clap(clap::Error),
    /// An argument has a value that cannot be.
    Value(String),
    /// What was given cannot be; this is the whole message, as it is shown.
    Shown(String),
    /// Things that were given do not go together.
    Usage(String),
    /// The results are not as they should be.
    Missed(String),
    /// A file or directory cannot be written.
    Environment(String),
    /// A command that was run ended with this status, and has said why itself.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "for `uncork emu`"))]
    Status(u8),
    /// The user stopped it; this says what is kept.
    Interrupted(String),
    /// Whoever read stdout has gone.
    BrokenPipe,
}

impl Failure {
    /// `argument` (such as `--rate <RATE>`) cannot be `value`, for `reason`.
    pub(crate) fn value(argument: &str, value: impl Display, reason: impl Display) -> Self {
        Self::Value(format!("invalid value '{value}' for '{argument}': {reason}"))
    }

    /// Nothing can be written to the directory of `--output`.
    pub(crate) fn output(directory: &Path, error: &io::Error) -> Self {
        let remedy = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                "make room there, or give another directory"
            }
            _ => "give a directory that can be written, or one that can be created",
        };
        Self::cannot_write(directory, error, remedy)
    }

    /// A run cannot be kept in the directory of `--output`; `again` goes on with those that are.
    pub(crate) fn unkept(directory: &Path, error: &io::Error, again: &str) -> Self {
        let remedy = format!("once it can be written, go on with: {again}");
        Self::cannot_write(directory, error, &remedy)
    }

    fn cannot_write(directory: &Path, error: &io::Error, remedy: &str) -> Self {
        let directory = directory.display();
        Self::Environment(format!(
            "cannot write to '{directory}' of '--output <DIR>': {error}; {remedy}"
        ))
    }

    /// stdout cannot be written.
    pub(crate) fn stdout(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::BrokenPipe,
            _ => Self::Environment(format!("cannot write to standard output: {error}")),
        }
    }

    /// Tells the user on stderr, and gives the exit status.
    pub(crate) fn report(self) -> ExitCode {
        match self {
            Self::Clap(error) => {
                // There is nowhere left to complain when this cannot be written.
                let _ = error.print();
                let is_help =
                    matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
                if is_help { ExitCode::SUCCESS } else { USAGE.into() }
            }
            Self::Value(message) => {
                eprintln!("error: {message}\n\nFor more information, try '--help'.");
                USAGE.into()
            }
            Self::Shown(message) => {
                eprintln!("{message}");
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
            Self::BrokenPipe => ExitCode::SUCCESS,
        }
    }
}

fn error(message: &str, status: u8) -> ExitCode {
    eprintln!("error: {message}");
    status.into()
}

/// From here on a panic in any thread ends the process with the status for a bug.
pub(crate) fn report_bugs() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        print(panic);
        eprintln!("error: this is a bug in uncork; please report it with the command that you ran");
        std::process::exit(BUG);
    }));
}
