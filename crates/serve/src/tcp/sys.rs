//! A socket option that no safe library offers: the only unsafe code of this crate.
#![expect(unsafe_code, reason = "each block says why it is sound")]

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Limits how fast the kernel paces the connection, in bytes per second, whatever its congestion control
/// wants (`SO_MAX_PACING_RATE` of socket(7)); `None` takes a limit away.
pub(super) fn limit_pacing(socket: impl AsFd, bytes_per_sec: Option<u64>) -> io::Result<()> {
    // All ones are no limit. Kernels before 5.0 read 32 bits, in which more than 4 GB/s are none, too.
    let rate = bytes_per_sec.unwrap_or(u64::MAX);
    let fd = socket.as_fd();
    // SAFETY: `fd` is open and `rate` lives during the call, which reads as many bytes as it has.
    let result = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MAX_PACING_RATE,
            (&raw const rate).cast(),
            size_of_val(&rate) as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
