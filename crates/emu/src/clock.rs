//! The wall clock of an emulation.

use rustix::time::{ClockId, clock_gettime};
use uncork_units::Time;

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
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
