//! Commands including all processes they start.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use uncork_units::Time;

use crate::{Clock, Namespace};

/// How long to wait until a server listens.
const PATIENCE: Duration = Duration::from_secs(10);
/// Polling interval.
const LOOK: Duration = Duration::from_millis(10);
/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);

/// A command in its own process group, which does not receive the terminal's signals. Dropping it
/// kills the whole group.
#[derive(Debug)]
pub struct ProcessGroup {
    child: Child,
    status: Option<ExitStatus>,
}

/// The state of a server after its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerState {
    /// It, or a process it started, is listening.
    Listening,
    /// It has exited, and no new socket is listening.
    Exited(ExitStatus),
    /// Neither happened within this time.
    TimedOut(Duration),
}

impl ProcessGroup {
    /// Starts `command`.
    ///
    /// # Errors
    ///
    /// The system's error.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        Ok(Self { child: command.process_group(0).spawn()?, status: None })
    }

    /// Starts `command`, a server on `host`, and waits until it listens, exits, ten seconds have
    /// passed, or `is_over`.
    ///
    /// # Errors
    ///
    /// The system's error.
    pub fn serve(
        host: &Namespace,
        command: &mut Command,
        is_over: impl Fn() -> bool,
    ) -> io::Result<(Self, ServerState)> {
        let before = host.listening()?;
        let mut group = Self::start(command)?;
        let clock = Clock::start();
        let waited = || Duration::from_nanos(clock.now().since(Time::ZERO).as_nanos());
        while waited() < PATIENCE && !is_over() {
            // In this order, because a daemon's first process exits and leaves the server running.
            let ended = group.ends_within(LOOK)?;
            if !host.listening()?.is_subset(&before) {
                return Ok((group, ServerState::Listening));
            }
            if let Some(status) = ended {
                return Ok((group, ServerState::Exited(status)));
            }
        }
        Ok((group, ServerState::TimedOut(waited())))
    }

    /// Its exit status, if it exits within `span`.
    ///
    /// # Errors
    ///
    /// The system's error.
    pub fn ends_within(&mut self, span: Duration) -> io::Result<Option<ExitStatus>> {
        if self.status.is_none() {
            self.status = ends_within(&mut self.child, span)?;
        }
        Ok(self.status)
    }

    /// Sends SIGTERM to the group.
    ///
    /// # Errors
    ///
    /// The system's error.
    pub fn ask_to_end(&mut self) -> io::Result<()> {
        self.signal(Signal::TERM)
    }

    /// Sends SIGTERM to the group and, after two seconds, SIGKILL. Returns the status of the
    /// command.
    ///
    /// # Errors
    ///
    /// The system's error.
    pub fn end(mut self) -> io::Result<ExitStatus> {
        self.ask_to_end()?;
        if let Some(status) = self.ends_within(GRACE)? {
            return Ok(status);
        }
        self.signal(Signal::KILL)?;
        let status = self.child.wait()?;
        self.status = Some(status);
        Ok(status)
    }

    /// Once the command has been waited for, its PID may belong to another process.
    fn signal(&mut self, signal: Signal) -> io::Result<()> {
        let Some(group) = pid(&self.child).filter(|_| self.status.is_none()) else { return Ok(()) };
        match kill_process_group(group, signal) {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if self.status.is_none() && self.signal(Signal::KILL).is_ok() {
            // It has been killed, so its status is meaningless.
            let _ = self.child.wait();
        }
    }
}

/// The exit status of `child`, if it exits within `span`.
///
/// # Errors
///
/// The system's error.
pub fn ends_within(child: &mut Child, span: Duration) -> io::Result<Option<ExitStatus>> {
    if let Some(status) = child.try_wait()? {
        return Ok(Some(status));
    }
    let Some(pid) = pid(child) else { return Ok(None) };
    let process = pidfd_open(pid, PidfdFlags::empty())?;
    let timeout = Timespec { tv_sec: span.as_secs() as i64, tv_nsec: span.subsec_nanos().into() };
    match poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => child.try_wait(),
        Err(error) => Err(error.into()),
    }
}

fn pid(child: &Child) -> Option<Pid> {
    Pid::from_raw(child.id() as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> ProcessGroup {
        ProcessGroup::start(Command::new("sh").args(["-c", script])).expect("a shell")
    }

    #[test]
    fn exit_is_detected_when_it_happens() {
        let mut group = shell("exit 7");
        let status = group.ends_within(Duration::from_secs(10)).expect("waited").expect("ended");
        assert_eq!(status.code(), Some(7));
        // The status is repeated, and no further signal is sent.
        assert_eq!(group.end().expect("ended").code(), Some(7));
        let mut group = shell("exec sleep 100");
        assert_eq!(group.ends_within(Duration::from_millis(20)).expect("waited"), None);
    }

    #[test]
    fn processes_started_by_a_command_end_with_it() {
        use std::os::unix::process::ExitStatusExt;
        let (reader, writer) = io::pipe().expect("a pipe");
        // The sleeping process keeps the pipe open too.
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 100 & wait"]).stdout(writer);
        let group = ProcessGroup::start(&mut command).expect("a shell");
        drop(command);
        assert_eq!(group.end().expect("ended").signal(), Some(15));
        let mut rest = String::new();
        io::Read::read_to_string(&mut &reader, &mut rest).expect("an end");
    }
}
