//! Waiting until there is something to do.

use std::io;
use std::num::NonZeroU64;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// What there is to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Woken {
    pub(crate) has_datagrams: bool,
    pub(crate) has_mail: bool,
}

/// Makes the calling thread's waits end on time, rather than up to 50 µs late.
pub(crate) fn be_precise() -> io::Result<()> {
    Ok(rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?)
}

/// Waits for something to read, for mail, if asked to for room to write, and at most for `timeout`.
pub(crate) fn wait(
    socket: impl AsFd,
    mailbox: impl AsFd,
    for_room: bool,
    timeout: Option<Duration>,
) -> io::Result<Woken> {
    let wanted = if for_room { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
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
        // An error of the socket is read from it, too.
        has_datagrams: socket.revents().intersects(PollFlags::IN | PollFlags::ERR),
        has_mail: !mailbox.revents().is_empty(),
    })
}
