//! Errors of sock_diag.

use std::io;

use thiserror::Error;

/// Why a dump failed. The message names the remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DiagError {
    /// The kernel is built without sock_diag for TCP, or its module is not loaded.
    #[error(
        "this kernel does not report its TCP connections: it needs CONFIG_INET_DIAG and CONFIG_INET_TCP_DIAG; if \
         they are modules, run modprobe tcp_diag"
    )]
    Unsupported,
    /// A security policy forbids the operation; the kernel itself requires no capability.
    #[error(
        "{0} is forbidden: allow this process sockets of the family AF_NETLINK, protocol NETLINK_SOCK_DIAG \
         (seccomp, SELinux, AppArmor, RestrictAddressFamilies)"
    )]
    Forbidden(&'static str),
    /// The named operation failed with this error number.
    #[error("{0} failed: {error}", error = io::Error::from_raw_os_error(*.1))]
    Kernel(&'static str, i32),
    /// A datagram of this many bytes did not fit. The buffer has grown to this size: dump again.
    #[error("a datagram of {0} bytes did not fit: dump again, the buffer has grown")]
    Truncated(usize),
    /// The reply is malformed.
    #[error(transparent)]
    Malformed(#[from] Malformed),
}

/// A part of a datagram with an impossible length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("malformed sock_diag reply: {part} of {length} bytes")]
pub struct Malformed {
    /// The part.
    pub part: &'static str,
    /// The length it claims or has, in bytes.
    pub length: usize,
}

impl DiagError {
    /// The error for `errno` of an operation.
    pub(crate) fn from_errno(doing: &'static str, errno: i32) -> Self {
        match io::Error::from_raw_os_error(errno).kind() {
            // ENOENT: no handler for the family (sock_diag) or the protocol (inet_diag).
            io::ErrorKind::NotFound => Self::Unsupported,
            io::ErrorKind::PermissionDenied => Self::Forbidden(doing),
            _ => Self::Kernel(doing, errno),
        }
    }
}
