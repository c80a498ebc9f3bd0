//! Errors as the user sees them.

use std::fmt::Display;
use std::io;
use std::path::Path;

use uncork_lab::EngineError;

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
    #[cfg(feature = "full")]
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

    /// An engine cannot run something.
    pub(crate) fn of_engine(error: EngineError) -> Self {
        if error.is_of_machine {
            Self::Environment(error.message)
        } else {
            Self::Usage(error.message)
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
        Self::cannot_write(directory.display(), error, remedy)
    }

    /// A run cannot be written to the directory or store of `--output`; the command `again` runs what is missing.
    pub(crate) fn unkept(directory: impl Display, error: &io::Error, again: &str) -> Self {
        let remedy = format!("once that is solved, continue with: {again}");
        Self::cannot_write(directory, error, &remedy)
    }

    fn cannot_write(directory: impl Display, error: &io::Error, remedy: &str) -> Self {
        Self::Environment(format!(
            "cannot write to '{directory}' of '--output <DIR>': {error}; {remedy}"
        ))
    }
}
