//! The time of a run.

use std::thread;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use uncork_units::Time;

/// A clock that stands at [`Time::ZERO`] when the run begins, which may be a little later than the clock
/// is made, and never steps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: u64,
}

impl Clock {
    /// A clock of a run that begins after `lead`.
    pub(crate) fn after(lead: Duration) -> Self {
        Self { origin: monotonic() + lead.as_nanos() as u64 }
    }

    pub(crate) fn now(self) -> Time {
        Time::from_nanos(monotonic().saturating_sub(self.origin))
    }

    /// Waits until `time`.
    pub(crate) fn wait_until(self, time: Time) {
        loop {
            let missing = (self.origin + time.as_nanos()).saturating_sub(monotonic());
            if missing == 0 {
                return;
            }
            thread::sleep(Duration::from_nanos(missing));
        }
    }
}

fn monotonic() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
