//! Measures how long a connection was busy, and what limited it.

use std::time::{Duration, Instant};

/// What limits a connection that has data to send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum LimitedBy {
    /// Its congestion control, or nothing.
    #[default]
    Path,
    /// The client's flow control.
    Client,
    /// The application, which has not yet supplied the whole body.
    Application,
}

/// Total times, like TCP's `tcpi_busy_time` and the related counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BusyTimes {
    pub(super) total: Duration,
    pub(super) by_client: Duration,
    pub(super) by_application: Duration,
    /// The time up to which busy time was added; `None` while idle.
    until: Option<Instant>,
}

impl BusyTimes {
    /// Adds the time since the last call. `held` is what limited the connection; `None` if it has
    /// no more data to send.
    pub(super) fn passed(&mut self, now: Instant, held: Option<LimitedBy>) {
        if let Some(until) = self.until {
            let span = now.saturating_duration_since(until);
            self.total += span;
            match held {
                None | Some(LimitedBy::Path) => {}
                Some(LimitedBy::Client) => self.by_client += span,
                Some(LimitedBy::Application) => self.by_application += span,
            }
        }
        self.until = held.map(|_| self.until.map_or(now, |until| until.max(now)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    #[test]
    fn busy_times_add_up_by_limit() {
        let start = clock::now();
        let mut busy = BusyTimes::default();
        let mut passed = |ms, held| {
            busy.passed(start + Duration::from_millis(ms), held);
            [busy.total, busy.by_client, busy.by_application].map(|time| time.as_millis())
        };
        assert_eq!(passed(10, None), [0, 0, 0]);
        assert_eq!(passed(20, Some(LimitedBy::Client)), [0, 0, 0], "it begins");
        assert_eq!(passed(50, Some(LimitedBy::Path)), [30, 0, 0]);
        assert_eq!(passed(60, Some(LimitedBy::Client)), [40, 10, 0]);
        assert_eq!(passed(80, Some(LimitedBy::Application)), [60, 10, 20]);
        assert_eq!(passed(90, None), [70, 10, 20], "it ends");
        assert_eq!(passed(500, Some(LimitedBy::Client)), [70, 10, 20], "and begins again");
    }
}
