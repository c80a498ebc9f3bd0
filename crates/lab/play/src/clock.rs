//! A clock that counts from its start.

use std::time::{Duration, Instant};

use uncork_units::{Time, TimeDelta};

/// A clock that started at zero.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlayClock(Instant);

impl PlayClock {
    pub(crate) fn start() -> Self {
        Self(instant())
    }

    pub(crate) fn now(self) -> Time {
        Time::ZERO + span(self.0.elapsed())
    }

    /// The clock's time at `instant`.
    pub(crate) fn at(self, instant: Instant) -> Time {
        Time::ZERO + span(instant.saturating_duration_since(self.0))
    }

    /// Waits until `time`; returns immediately if it has passed.
    pub(crate) async fn wait_until(self, time: Time) {
        let left = Duration::from_nanos(time.since(Time::ZERO).as_nanos());
        if let Some(at) = self.0.checked_add(left) {
            tokio::time::sleep_until(at.into()).await;
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a client is an outermost layer")]
pub(crate) fn instant() -> Instant {
    Instant::now()
}

pub(crate) fn span(duration: Duration) -> TimeDelta {
    TimeDelta::from_nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}
