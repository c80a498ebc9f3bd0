//! Waiting for commands, and passing signals on to them.

use std::io;
use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, kill_process_group, pidfd_open};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

/// How often to look whether a signal has come.
const INTERVAL: Duration = Duration::from_millis(50);
/// A server that was asked to end is killed after this.
const GRACE: Duration = Duration::from_secs(2);

/// Signals that have come.
#[derive(Debug)]
pub(super) struct Signals {
    /// Ctrl-C. The terminal sends it to commands, too.
    interrupt: Arc<AtomicBool>,
    /// What batch systems and closed terminals send; only this process gets it.
    terminate: Arc<AtomicBool>,
}

impl Signals {
    /// From now on signals do not end the process.
    pub(super) fn catch() -> io::Result<Self> {
        let signals = Self { interrupt: Arc::default(), terminate: Arc::default() };
        flag::register(SIGINT, Arc::clone(&signals.interrupt))?;
        for signal in [SIGTERM, SIGHUP] {
            flag::register(signal, Arc::clone(&signals.terminate))?;
        }
        Ok(signals)
    }

    /// Waits for any of them.
    pub(super) fn wait(&self) {
        while !self.interrupt.load(Ordering::Relaxed) && !self.terminate.load(Ordering::Relaxed) {
            thread::sleep(INTERVAL);
        }
    }

    /// Waits until `child` has ended, and passes on what only this process gets.
    pub(super) fn wait_for(&self, child: &mut Child) -> io::Result<ExitStatus> {
        while !has_ended(child, INTERVAL)? {
            if self.terminate.swap(false, Ordering::Relaxed) {
                signal(child, Signal::TERM)?;
            }
        }
        child.wait()
    }
}

/// Whether `child` ends within `span`.
pub(super) fn has_ended(child: &mut Child, span: Duration) -> io::Result<bool> {
    if child.try_wait()?.is_some() {
        return Ok(true);
    }
    let Some(pid) = pid(child) else { return Ok(true) };
    let process = pidfd_open(pid, PidfdFlags::empty())?;
    let timeout = Timespec { tv_sec: span.as_secs() as i64, tv_nsec: span.subsec_nanos().into() };
    match poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(child.try_wait()?.is_some()),
        Err(error) => Err(error.into()),
    }
}

/// Asks `child`, which leads a process group, and all of that to end, and makes it after a while.
pub(super) fn end(child: &mut Child) -> io::Result<()> {
    if child.try_wait()?.is_none() {
        if let Some(group) = pid(child) {
            kill_process_group(group, Signal::TERM)?;
        }
        if !has_ended(child, GRACE)? {
            child.kill()?;
        }
        child.wait()?;
    }
    Ok(())
}

fn signal(child: &Child, signal: Signal) -> io::Result<()> {
    pid(child).map_or(Ok(()), |pid| kill_process(pid, signal).map_err(io::Error::from))
}

fn pid(child: &Child) -> Option<Pid> {
    Pid::from_raw(child.id() as i32)
}
