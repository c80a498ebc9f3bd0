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
    /// A security policy forbids what was tried; the kernel itself demands no capability.
    #[error(
        "{0} is forbidden: allow this process sockets of the family AF_NETLINK, protocol NETLINK_SOCK_DIAG \
         (seccomp, SELinux, AppArmor, RestrictAddressFamilies)"
    )]
    Forbidden(&'static str),
    /// The kernel, while doing what is named, gave this error number.
    #[error("{0} failed: {error}", error = io::Error::from_raw_os_error(*.1))]
    Kernel(&'static str, i32),
    /// A datagram of so many bytes did not fit. The buffer has grown to this size: dump again.
    #[error("a datagram of {0} bytes did not fit: dump again, the buffer has grown")]
    Truncated(usize),
    /// The reply is malformed.
    #[error(transparent)]
    Malformed(#[from] Malformed),
}

/// A part of a datagram that claims a length it cannot have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("malformed sock_diag reply: {part} of {length} bytes")]
pub struct Malformed {
    /// The part.
    pub part: &'static str,
    /// The length it claims or has, in bytes.
    pub length: usize,
}

impl DiagError {
    /// What an error number means that the kernel gave while `doing` something.
    pub(crate) fn from_errno(doing: &'static str, errno: i32) -> Self {
        match io::Error::from_raw_os_error(errno).kind() {
            // sock_diag looks for a handler of the family, inet_diag for one of the protocol.
            io::ErrorKind::NotFound => Self::Unsupported,
            io::ErrorKind::PermissionDenied => Self::Forbidden(doing),
            _ => Self::Kernel(doing, errno),
        }
    }
}
