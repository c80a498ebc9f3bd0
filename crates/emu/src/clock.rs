//! The wall clock of an emulation.

use rustix::time::{ClockId, clock_gettime};
use uncork_units::{Time, TimeDelta};

/// A clock that stands at [`Time::ZERO`] when it is made and never steps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: u64,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self { origin: monotonic() }
    }

    pub(crate) fn now(self) -> Time {
        Time::from_nanos(monotonic() - self.origin)
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
