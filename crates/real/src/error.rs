//! What can be wrong.

use std::fmt;
use std::io;

use uncork_emu::EmuError;

/// Why there is no run.
#[derive(Debug)]
#[non_exhaustive]
pub enum RealError {
    /// The path cannot be emulated, or not here.
    Path(EmuError),
    /// The kernel has no such controller, or no such option of it; this says which it has.
    Controller(String),
    /// A command does not run here; this says which, and what it printed last.
    Command(String),
    /// Real endpoints cannot do what is described; this says what.
    Spec(String),
    /// The system does not allow it.
    System {
        /// What was tried.
        action: &'static str,
        /// What the system said.
        error: io::Error,
    },
}

impl RealError {
    /// For [`Result::map_err`] after `action` has failed.
    pub(crate) fn system(action: &'static str) -> impl Fn(io::Error) -> Self {
        move |error| Self::System { action, error }
    }

    /// Whether the machine is at fault, not the description.
    pub fn is_of_machine(&self) -> bool {
        match self {
            Self::Path(error) => matches!(error, EmuError::System { .. }),
            Self::Controller(_) | Self::Command(_) | Self::System { .. } => true,
            Self::Spec(_) => false,
        }
    }
}

impl fmt::Display for RealError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(error) => error.fmt(f),
            Self::Controller(problem) | Self::Command(problem) | Self::Spec(problem) => {
                f.write_str(problem)
            }
            Self::System { action, error } => write!(f, "cannot {action}: {error}"),
        }
    }
}

impl std::error::Error for RealError {}

impl From<EmuError> for RealError {
    fn from(error: EmuError) -> Self {
        Self::Path(error)
    }
}
