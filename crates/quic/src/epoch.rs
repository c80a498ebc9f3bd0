//! The stack's instants as the controllers' times.

use std::time::Instant;

use uncork_units::Time;

/// The instant that is time zero.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Epoch(Instant);

impl Epoch {
    pub(crate) fn new(zero: Instant) -> Self {
        Self(zero)
    }

    /// The time at `instant`; zero for those before time zero.
    pub(crate) fn time(self, instant: Instant) -> Time {
        let nanos = instant.saturating_duration_since(self.0).as_nanos();
        Time::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}
