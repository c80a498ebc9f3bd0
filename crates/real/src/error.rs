//! What can be wrong.

use std::fmt;
use std::io;

use uncork_diag::DiagError;
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
    /// The kernel does not tell of its connections.
    Connections(DiagError),
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
            Self::Controller(_) | Self::Command(_) | Self::Connections(_) | Self::System { .. } => {
                true
            }
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
            Self::Connections(error) => error.fmt(f),
            Self::System { action, error } => write!(f, "cannot {action}: {error}"),
        }
    }
}

impl std::error::Error for RealError {}

impl From<DiagError> for RealError {
    fn from(error: DiagError) -> Self {
        Self::Connections(error)
    }
}

impl From<EmuError> for RealError {
    fn from(error: EmuError) -> Self {
        Self::Path(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It decides the exit status, and whether a test may say that it did not run.
    #[test]
    fn a_kernel_that_lacks_something_is_not_the_scenario_s_fault() {
        let error = RealError::from(DiagError::Unsupported);
        assert!(
            error.is_of_machine() && error.to_string().contains("modprobe tcp_diag"),
            "{error}"
        );
        assert!(!RealError::from(EmuError::Spec("0 hosts".into())).is_of_machine());
    }
}
