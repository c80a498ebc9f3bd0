//! Errors.

use std::io;

use uncork_path::PathSpecError;

use crate::EmulationSpec;
use crate::address::MAX_HOSTS;

/// Why an emulation failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmuError {
    /// A path cannot be built.
    #[error(transparent)]
    Path(#[from] PathSpecError),
    /// The MTU is out of range.
    #[error("an MTU of {0} B is out of range; expected {min} B to {max} B", min = EmulationSpec::MTUS.0, max = EmulationSpec::MTUS.1)]
    Mtu(u32),
    /// Too few or too many hosts.
    #[error("{0} hosts are out of range; expected 1 to {MAX_HOSTS}")]
    Hosts(usize),
    /// The specification cannot be emulated; the text says what and gives the valid range.
    #[error("{0}")]
    Spec(String),
    /// The system does not allow it.
    #[error("cannot {action}: {error}; {remedy}")]
    System {
        /// The failed action.
        action: &'static str,
        /// How to fix it.
        remedy: &'static str,
        /// The system's error.
        error: io::Error,
    },
}

impl EmuError {
    /// `action` failed.
    pub(crate) fn system(action: &'static str, error: io::Error) -> Self {
        let remedy = match error.kind() {
            io::ErrorKind::PermissionDenied => match action {
                NEW_NAMESPACE => {
                    "it takes CAP_SYS_ADMIN: run as root, or where user namespaces are allowed \
                     within `unshare --user --map-root-user`"
                }
                OPEN_TUN => "the file is closed to this user: run as root, or chmod 666 it",
                _ => "it takes CAP_NET_ADMIN: run as root",
            },
            io::ErrorKind::NotFound if action == OPEN_TUN => {
                "load it with `modprobe tun`; a container needs `--device /dev/net/tun`"
            }
            _ if error.raw_os_error() == Some(libc::EMFILE) => {
                "each host takes two open files: raise the limit with `ulimit -n`"
            }
            _ if action == CARRY => {
                "leave the devices uncork0 of its namespaces alone while it runs"
            }
            _ => "the kernel refuses; is it built with CONFIG_NET_NS and CONFIG_TUN?",
        };
        Self::System { action, remedy, error }
    }
}

/// The most frequent failures, with specific remedies.
pub(crate) const NEW_NAMESPACE: &str = "make a network namespace";
pub(crate) const CARRY: &str = "carry packets";
pub(crate) const OPEN_TUN: &str = "open /dev/net/tun";
