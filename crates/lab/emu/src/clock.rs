//! The wall clock of an emulation and of runs over it.

use std::thread;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use uncork_units::{Time, TimeDelta};

/// A monotonic clock. It stays at [`Time::ZERO`] until it starts.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: u64,
}

impl Clock {
    /// A clock that starts now.
    pub fn start() -> Self {
        Self::after(TimeDelta::ZERO)
    }

    /// A clock that starts after `lead`.
    pub fn after(lead: TimeDelta) -> Self {
        Self { origin: monotonic() + lead.as_nanos() }
    }

    /// The current time.
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
