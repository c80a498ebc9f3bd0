//! The wall clock of an emulation, and of what is played over it.

use std::thread;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use uncork_units::{Time, TimeDelta};

/// A clock that never steps. It begins at [`Time::ZERO`], which it stands at until then.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: u64,
}

impl Clock {
    /// A clock that begins now.
    pub fn start() -> Self {
        Self::after(TimeDelta::ZERO)
    }

    /// A clock that begins after `lead`.
    pub fn after(lead: TimeDelta) -> Self {
        Self { origin: monotonic() + lead.as_nanos() }
    }

    /// What it shows.
    pub fn now(self) -> Time {
        Time::from_nanos(monotonic().saturating_sub(self.origin))
    }

    /// Waits until it shows `time`.
    pub fn wait_until(self, time: Time) {
        loop {
            let due = self.origin.saturating_add(time.as_nanos());
            let missing = due.saturating_sub(monotonic());
            if missing == 0 {
                return;
            }
            thread::sleep(Duration::from_nanos(missing));
        }
    }
}

fn monotonic() -> u64 {
    nanos(ClockId::Monotonic)
}

/// Processor time of the calling thread.
pub(crate) fn cpu_time() -> TimeDelta {
    TimeDelta::from_nanos(nanos(ClockId::ThreadCPUTime))
}

fn nanos(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
