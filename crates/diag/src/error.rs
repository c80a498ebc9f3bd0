//! Why the kernel's connections cannot be told.

use std::fmt;
use std::io;

/// Why a dump failed. Printed, it says what was tried, what came of it and what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiagError {
    /// The kernel is built without sock_diag for TCP, or its module is not loaded.
    Unsupported,
    /// A security policy forbids what was tried; the kernel itself demands no capability.
    Forbidden(&'static str),
    /// The kernel, while doing what is named, gave this error number.
    Kernel(&'static str, i32),
    /// A datagram of so many bytes did not fit. The buffer has grown to this size: dump again.
    Truncated(usize),
    /// What came is not what sock_diag sends.
    Malformed(Malformed),
}

/// A part of a datagram that claims a length it cannot have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// What it was to be.
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

impl From<Malformed> for DiagError {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed)
    }
}

impl fmt::Display for DiagError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported => f.write_str(
                "this kernel cannot tell of its TCP connections: it needs CONFIG_INET_DIAG and \
                 CONFIG_INET_TCP_DIAG; if they are modules, run modprobe tcp_diag",
            ),
            Self::Forbidden(doing) => write!(
                f,
                "{doing} is forbidden: allow this process sockets of the family AF_NETLINK, \
                 protocol NETLINK_SOCK_DIAG (seccomp, SELinux, AppArmor, RestrictAddressFamilies)"
            ),
            Self::Kernel(doing, errno) => {
                write!(f, "{doing} failed: {}", io::Error::from_raw_os_error(*errno))
            }
            Self::Truncated(length) => write!(
                f,
                "a datagram of {length} bytes did not fit: dump again, there is room for it now"
            ),
            Self::Malformed(malformed) => malformed.fmt(f),
        }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { part, length } = self;
        write!(f, "{part} of {length} bytes cannot be what the kernel's sock_diag sends")
    }
}

impl std::error::Error for DiagError {}
impl std::error::Error for Malformed {}
