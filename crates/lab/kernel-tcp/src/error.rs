//! Errors of runs on the kernel.

use std::io;

use thiserror::Error;
use uncork_diag::DiagError;
use uncork_emu::EmuError;

/// Why a run failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum KernelTcpError {
    /// The path cannot be emulated, in general or on this machine.
    #[error(transparent)]
    Path(#[from] EmuError),
    /// The kernel lacks the controller or its option; the text lists the available ones.
    #[error("{0}")]
    Controller(String),
    /// A command failed; the text has its name and last output.
    #[error("{0}")]
    Command(String),
    /// sock_diag failed.
    #[error(transparent)]
    Connections(#[from] DiagError),
    /// The kernel does not support this part of the scenario; the text names it.
    #[error("{0}")]
    Spec(String),
    /// The system does not allow it.
    #[error("cannot {action}: {error}")]
    System {
        /// The action that failed.
        action: &'static str,
        /// The system's error.
        error: io::Error,
    },
}

impl KernelTcpError {
    /// For [`Result::map_err`] when `action` fails.
    pub(crate) fn system(action: &'static str) -> impl Fn(io::Error) -> Self {
        move |error| Self::System { action, error }
    }

    /// Whether the machine is the cause, not the scenario.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Determines the exit status, and whether a test may be skipped.
    #[test]
    fn missing_kernel_features_are_errors_of_the_machine() {
        let error = KernelTcpError::from(DiagError::Unsupported);
        assert!(
            error.is_of_machine() && error.to_string().contains("modprobe tcp_diag"),
            "{error}"
        );
        assert!(!KernelTcpError::from(EmuError::Spec("0 hosts".into())).is_of_machine());
    }
}
