//! Commands that end when they are told to, with all that they started.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use uncork_units::Time;

use crate::{Clock, Namespace};

/// How long a server may take until it listens.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often to look whether it does.
const LOOK: Duration = Duration::from_millis(10);
/// What was asked to end is killed after this.
const GRACE: Duration = Duration::from_secs(2);

/// A command that leads a process group: signals of the terminal do not reach it. Dropped, all of the
/// group is killed.
#[derive(Debug)]
pub struct Job {
    child: Child,
    status: Option<ExitStatus>,
}

/// How far a server got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// It listens, or what it started does.
    Listens,
    /// It has ended, and nothing listens that did not before.
    Ended(ExitStatus),
    /// It did neither in this time.
    Silent(Duration),
}

impl Job {
    /// Starts `command`.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        Ok(Self { child: command.process_group(0).spawn()?, status: None })
    }

    /// Starts `command`, a server on `host`, and waits until it listens or has ended, but not longer
    /// than ten seconds or until `is_over`.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn serve(
        host: &Namespace,
        command: &mut Command,
        is_over: impl Fn() -> bool,
    ) -> io::Result<(Self, Service)> {
        let before = host.listening()?;
        let mut job = Self::start(command)?;
        let clock = Clock::start();
        let waited = || Duration::from_nanos(clock.now().since(Time::ZERO).as_nanos());
        while waited() < PATIENCE && !is_over() {
            // In this order: what has ended may have left a server behind, as daemons do.
            let ended = job.ends_within(LOOK)?;
            if !host.listening()?.is_subset(&before) {
                return Ok((job, Service::Listens));
            }
            if let Some(status) = ended {
                return Ok((job, Service::Ended(status)));
            }
        }
        Ok((job, Service::Silent(waited())))
    }

    /// How it ended, if it does within `span`.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn ends_within(&mut self, span: Duration) -> io::Result<Option<ExitStatus>> {
        if self.status.is_none() {
            self.status = ends_within(&mut self.child, span)?;
        }
        Ok(self.status)
    }

    /// Asks the whole group to end.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn ask_to_end(&mut self) -> io::Result<()> {
        self.signal(Signal::TERM)
    }

    /// Asks the whole group to end, kills it after two seconds, and gives how the command ended.
    ///
    /// # Errors
    ///
    /// What the system says.
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

    /// Once the command has been waited for, its number may be another's.
    fn signal(&mut self, signal: Signal) -> io::Result<()> {
        let Some(group) = pid(&self.child).filter(|_| self.status.is_none()) else { return Ok(()) };
        match kill_process_group(group, signal) {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if self.status.is_none() && self.signal(Signal::KILL).is_ok() {
            // It has been killed: there is nothing to learn.
            let _ = self.child.wait();
        }
    }
}

/// How `child` ended, if it does within `span`.
///
/// # Errors
///
/// What the system says.
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

    fn shell(script: &str) -> Job {
        Job::start(Command::new("sh").args(["-c", script])).expect("a shell")
    }

    #[test]
    fn an_end_is_seen_when_it_comes() {
        let mut job = shell("exit 7");
        let status = job.ends_within(Duration::from_secs(10)).expect("waited").expect("ended");
        assert_eq!(status.code(), Some(7));
        // Told again, and nothing else is signalled.
        assert_eq!(job.end().expect("ended").code(), Some(7));
        let mut job = shell("exec sleep 100");
        assert_eq!(job.ends_within(Duration::from_millis(20)).expect("waited"), None);
    }

    #[test]
    fn what_a_command_started_ends_with_it() {
        use std::os::unix::process::ExitStatusExt;
        let (reader, writer) = io::pipe().expect("a pipe");
        // The sleeping one holds the pipe open, too.
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 100 & wait"]).stdout(writer);
        let job = Job::start(&mut command).expect("a shell");
        drop(command);
        assert_eq!(job.end().expect("ended").signal(), Some(15));
        let mut rest = String::new();
        io::Read::read_to_string(&mut &reader, &mut rest).expect("an end");
    }
}
