//! Waiting for commands, and passing signals on to them.

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

/// How often to look whether a signal has come.
const INTERVAL: Duration = Duration::from_millis(50);

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

    /// Whether any of them has come.
    pub(super) fn have_come(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed) || self.terminate.load(Ordering::Relaxed)
    }

    /// Waits for any of them, or until there is no path any more.
    pub(super) fn wait(&self, emulation: &Emulation) {
        while !self.have_come() && emulation.is_at_work() {
            thread::sleep(INTERVAL);
        }
    }

    /// Waits until `child` has ended, and passes on what only this process gets. Without a path it is
    /// told to end, too.
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
