//! What can go wrong, each with the remedy.

use std::io;

use crate::sys;

/// Why a controller could not be loaded, found or unloaded.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not one of ours.
    #[error(
        "unknown controller {0} (available: uncork_bbr1, uncork_bbr2, uncork_bbr3, uncork_cubic, uncork_prague, uncork_reno)"
    )]
    Unknown(String),
    /// This machine cannot do it.
    #[error(transparent)]
    Missing(#[from] Missing),
    /// It is there already.
    #[error("{0} is loaded already; unload it first")]
    Loaded(&'static str),
    /// Another program has registered the name.
    #[error("{0} is registered, but not by a pin in {1}; unregister it: uncork kernel unload {0}")]
    Foreign(&'static str, String),
    /// It is not there.
    #[error("{0} is not loaded")]
    NotLoaded(&'static str),
    /// It is registered without a pin, and cannot be unregistered from outside.
    #[error(
        "cannot unregister {name}, which has no pin of uncork: {error}; remove the pin that keeps it (find /sys/fs/bpf, in the \
         mount namespace that has it), or end the process that does"
    )]
    Held {
        /// The controller.
        name: &'static str,
        /// What the kernel said.
        error: io::Error,
    },
    /// Another user may change what is pinned in a directory.
    #[error(
        "unsafe directory for pins: {directory}: {reason}; run `{remedy}`, and try again (it removes the pins in it)"
    )]
    Unsafe {
        /// The directory.
        directory: String,
        /// Why.
        reason: String,
        /// The command that ends it.
        remedy: String,
    },
    /// The kernel refused a step.
    #[error("cannot {step}: {error}")]
    Step {
        /// What was tried.
        step: String,
        /// What the kernel said.
        error: io::Error,
    },
    /// The verifier refused a program.
    #[error(
        "the kernel's verifier refuses {program}: {reason}; use another kernel (docs/evidence/kernel.md lists the tested ones)"
    )]
    Refused {
        /// The program's name.
        program: String,
        /// The last line of the verifier's log.
        reason: String,
    },
    /// The embedded object cannot be used.
    #[error("the object of {0}: {1}")]
    Object(&'static str, String),
}

/// What the environment lacks.
#[derive(Debug, thiserror::Error)]
pub enum Missing {
    /// No BTF.
    #[error(
        "this kernel does not describe its types (no {0}); use one with CONFIG_DEBUG_INFO_BTF=y"
    )]
    Btf(&'static str),
    /// No struct_ops for TCP, or too old.
    #[error("this kernel cannot do it: {0}; use Linux 6.1 or newer")]
    Kernel(String),
    /// No AccECN for a congestion control.
    #[error(
        "this kernel does not negotiate AccECN for a congestion control, which {0} needs; use Linux 7.0 or newer, or a newer 6.18 (6.18.44 and 7.2.13 are tested)"
    )]
    AccEcn(&'static str),
    /// Privileges.
    #[error(
        "cannot {step} without the privilege; run as root{}, or with CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN",
        if *.is_root { " of the initial user namespace (outside of the container)" } else { "" }
    )]
    Privilege {
        /// What was tried.
        step: String,
        /// Whether the user is root, of a user namespace or without capabilities.
        is_root: bool,
    },
    /// The file's rights, not the process's capabilities.
    #[error(
        "{0} may be opened by its owner only; run as the user who made it, or with CAP_DAC_OVERRIDE"
    )]
    Pin(String),
    /// No BPF file system.
    #[error("no BPF file system is mounted at {0}; mount it: mount -t bpf bpf {0}")]
    FileSystem(String),
    /// This mount namespace lacks it, as that of `ip netns exec` does (ip-netns(8)).
    #[error(
        "the BPF file system at {place} is hidden in this mount namespace, as `ip netns exec` does; enter the network namespace \
         alone: nsenter --net={namespace} uncork …"
    )]
    Hidden {
        /// The mount point.
        place: String,
        /// The file of the network namespace.
        namespace: String,
    },
}

impl Error {
    /// `step` failed with `error`.
    pub(crate) fn step(step: impl Into<String>, error: io::Error) -> Self {
        let step = step.into();
        if error.kind() == io::ErrorKind::PermissionDenied {
            return Missing::Privilege { step, is_root: sys::user() == 0 }.into();
        }
        Self::Step { step, error }
    }

    /// Whether the environment cannot do it, with any arguments.
    pub const fn is_environment(&self) -> bool {
        matches!(self, Self::Missing(_) | Self::Refused { .. } | Self::Unsafe { .. })
    }
}
