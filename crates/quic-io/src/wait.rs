//! Waiting for a socket, a mailbox or a deadline.

use std::io;
use std::num::NonZeroU64;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// What a wait ended with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Woken {
    pub(crate) has_datagrams: bool,
    pub(crate) has_mail: bool,
}

/// Sets the thread's timer slack to 1 ns, so that waits do not end up to 50 µs late.
pub(crate) fn set_timer_slack() -> io::Result<()> {
    Ok(rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?)
}

/// Waits until the socket is readable (or writable, with `or_writable`), mail arrives, or `timeout` passes.
pub(crate) fn wait(
    socket: impl AsFd,
    mailbox: impl AsFd,
    or_writable: bool,
    timeout: Option<Duration>,
) -> io::Result<Woken> {
    let wanted = if or_writable { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
    let mut fds = [PollFd::new(&socket, wanted), PollFd::new(&mailbox, PollFlags::IN)];
    let timeout = timeout.map(|timeout| Timespec {
        tv_sec: timeout.as_secs() as i64,
        tv_nsec: timeout.subsec_nanos().into(),
    });
    match poll(&mut fds, timeout.as_ref()) {
        Ok(_) => {}
        Err(Errno::INTR) => return Ok(Woken::default()),
        Err(error) => return Err(error.into()),
    }
    let [socket, mailbox] = fds;
    Ok(Woken {
        // Socket errors are reported by reading.
        has_datagrams: socket.revents().intersects(PollFlags::IN | PollFlags::ERR),
        has_mail: !mailbox.revents().is_empty(),
    })
}
