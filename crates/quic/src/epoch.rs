//! The stack's instants as the controllers' times.

use std::time::{Duration, Instant};

use uncork_units::Time;

/// The instant that is time zero.
#[derive(Clone, Copy, Debug)]
pub struct Epoch(Instant);

impl Epoch {
    /// Times count from `zero`.
    pub fn new(zero: Instant) -> Self {
        Self(zero)
    }

    /// The instant at `time`.
    pub fn instant(self, time: Time) -> Instant {
        self.0 + Duration::from_nanos(time.as_nanos())
    }

    /// The time at `instant`; zero for those before time zero.
    pub fn time(self, instant: Instant) -> Time {
        let nanos = instant.saturating_duration_since(self.0).as_nanos();
        Time::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}
