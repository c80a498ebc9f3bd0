//! Waiting for datagrams, a mailbox or a deadline.

use std::io;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// The result of a wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Woken {
    pub(crate) has_datagrams: bool,
    pub(crate) has_mail: bool,
}

/// Sets the thread's timer slack to 1 ns, so that waits do not end up to 50 µs late.
pub(crate) fn set_timer_slack() -> io::Result<()> {
    Ok(rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?)
}

/// Waits until `source` is readable, `sink` is writable, mail arrives, or `timeout` passes.
pub(crate) fn wait(
    source: BorrowedFd<'_>,
    sink: Option<BorrowedFd<'_>>,
    mailbox: impl AsFd,
    timeout: Option<Duration>,
) -> io::Result<Woken> {
    let mailbox = mailbox.as_fd();
    let mut fds = [
        PollFd::from_borrowed_fd(source, PollFlags::IN),
        PollFd::from_borrowed_fd(mailbox, PollFlags::IN),
        PollFd::from_borrowed_fd(sink.unwrap_or(source), PollFlags::OUT),
    ];
    let count = 2 + usize::from(sink.is_some());
    let fds = &mut fds[..count];
    let timeout = timeout.map(|timeout| Timespec {
        tv_sec: timeout.as_secs() as i64,
        tv_nsec: timeout.subsec_nanos().into(),
    });
    match poll(fds, timeout.as_ref()) {
        Ok(_) => {}
        Err(Errno::INTR) => return Ok(Woken::default()),
        Err(error) => return Err(error.into()),
    }
    Ok(Woken {
        // Socket errors are reported by reading.
        has_datagrams: fds[0].revents().intersects(PollFlags::IN | PollFlags::ERR),
        has_mail: !fds[1].revents().is_empty(),
    })
}
