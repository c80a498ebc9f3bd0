//! Waits for commands and forwards signals to them.

use std::io;
use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use uncork_emu::{Emulation, ends_within};

/// Polling interval for signals.
const INTERVAL: Duration = Duration::from_millis(50);

/// Signals received.
#[derive(Debug)]
pub(super) struct Signals {
    /// Ctrl-C. The terminal also sends it to commands.
    interrupt: Arc<AtomicBool>,
    /// SIGTERM and SIGHUP, sent by batch systems and closed terminals to this process only.
    terminate: Arc<AtomicBool>,
}

impl Signals {
    /// From now on, signals do not end the process.
    pub(super) fn catch() -> io::Result<Self> {
        let signals = Self { interrupt: Arc::default(), terminate: Arc::default() };
        flag::register(SIGINT, Arc::clone(&signals.interrupt))?;
        for signal in [SIGTERM, SIGHUP] {
            flag::register(signal, Arc::clone(&signals.terminate))?;
        }
        Ok(signals)
    }

    /// Whether any signal has been received.
    pub(super) fn have_come(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed) || self.terminate.load(Ordering::Relaxed)
    }

    /// Waits for any signal, or until the path is gone.
    pub(super) fn wait(&self, emulation: &Emulation) {
        while !self.have_come() && emulation.is_at_work() {
            thread::sleep(INTERVAL);
        }
    }

    /// Waits until `child` exits, and forwards signals that only this process receives. If the path
    /// is gone, terminates the child too.
    pub(super) fn wait_for(
        &self,
        child: &mut Child,
        emulation: &Emulation,
    ) -> io::Result<ExitStatus> {
        let mut had_path = true;
        loop {
            if let Some(status) = ends_within(child, INTERVAL)? {
                return Ok(status);
            }
            let lost_path = had_path && !emulation.is_at_work();
            had_path &= !lost_path;
            if self.terminate.swap(false, Ordering::Relaxed) || lost_path {
                terminate(child)?;
            }
        }
    }
}

fn terminate(child: &Child) -> io::Result<()> {
    let pid = Pid::from_raw(child.id() as i32);
    pid.map_or(Ok(()), |pid| kill_process(pid, Signal::TERM).map_err(io::Error::from))
}
