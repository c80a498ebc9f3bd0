//! Converts the stack's instants to the controllers' times.

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
        self.0 + Duration::from(time.since(Time::ZERO))
    }

    /// The time at `instant`; zero for instants before time zero.
    pub fn time(self, instant: Instant) -> Time {
        Time::from_elapsed(instant.saturating_duration_since(self.0))
    }
}
