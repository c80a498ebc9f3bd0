//! What can go wrong, each with the remedy.

use std::io;
use std::path::PathBuf;

use uncork_cc::Missing;
use uncork_diag::DiagError;
use uncork_policy::FlatError;
use uncork_private_files::lock::holder_text;
use uncork_records::RecordsError;
use uncork_watch::WatchError;

/// Why connections cannot be steered.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The policy asks for what a kernel does not know, or does not fit.
    #[error(transparent)]
    Policy(#[from] FlatError),
    /// The host does not have a controller.
    #[error(
        "{place}: this host does not have the controller `{name}`: {}; available: {known}",
        Missing(name)
    )]
    Controller {
        /// The policy and the place in it.
        place: String,
        /// The controller.
        name: String,
        /// The available ones.
        known: String,
    },
    /// A controller without Careful Resume.
    #[error(
        "{place}: `resume`: {} does not resume; write the tcp of `uncork kernel load --resume`, such as tcp = \"uncork_cubic\", \
         or remove `resume`",
        .name.as_ref().map_or("the system's controller".to_owned(), |name| format!("`{name}`"))
    )]
    Resume {
        /// The policy and the place in it.
        place: String,
        /// The controller; `None` is the system's.
        name: Option<String>,
    },
    /// A rate that the kernel's socket option cannot express.
    #[error("{place}: the kernel takes rates below 34 Gbit/s; remove `{key}`")]
    Rate {
        /// The policy and the place in it.
        place: String,
        /// The key of the setting.
        key: &'static str,
    },
    /// Not a cgroup.
    #[error(
        "{path} is not a cgroup v2 directory: {reason}; choose a directory below that of `findmnt -t cgroup2`",
        path = .path.display()
    )]
    Cgroup {
        /// What was given.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// Another process changes policies, and did not end while this one waited.
    #[error("{} changes policies, and has not ended; try again, or end it", holder_text(*.0))]
    Busy(Option<u32>),
    /// Another recorder reads.
    #[error("another `uncork steer record` reads {path} ({}); end it first", holder_text(*.1), path = .0.display())]
    Recorded(PathBuf, Option<u32>),
    /// Connections cannot be watched.
    #[error(transparent)]
    Watch(#[from] WatchError),
    /// The kernel does not report open connections.
    #[error(transparent)]
    Diag(#[from] DiagError),
    /// Records have no place.
    #[error(transparent)]
    Records(#[from] RecordsError),
    /// Nothing to show or revert.
    #[error("{0} is not steered")]
    NotSteered(String),
    /// The pins are not as `apply` leaves them.
    #[error("the pins in {path} are damaged: {reason}; revert, and apply again", path = .path.display())]
    Damaged {
        /// Where they are.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A step that the kernel refused.
    #[error("cannot {step}: {error}")]
    Step {
        /// What was tried.
        step: String,
        /// What the kernel said.
        error: io::Error,
    },
    /// The loader's.
    #[error(transparent)]
    Kernel(#[from] uncork_kernel::Error),
}

impl Error {
    pub(crate) fn step(step: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let step = step.into();
        move |error| match error.kind() {
            io::ErrorKind::PermissionDenied => Self::Step {
                step,
                error: io::Error::new(
                    error.kind(),
                    "it needs CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN; run as root",
                ),
            },
            _ => Self::Step { step, error },
        }
    }

    /// Whether the user's files are wrong, not this machine.
    pub const fn is_users(&self) -> bool {
        matches!(
            self,
            Self::Policy(_) | Self::Controller { .. } | Self::Resume { .. } | Self::Rate { .. }
        )
    }
}
