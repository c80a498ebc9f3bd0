//! How long a connection was busy, and what held it back.

use std::time::{Duration, Instant};

/// What a connection that has something to send waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum LimitedBy {
    /// Nothing, or what its congestion control lets go.
    #[default]
    Path,
    /// The client's windows.
    Client,
    /// The application, which has given less than it has promised.
    Application,
}

/// Sums of times, in the words of TCP's `tcpi_busy_time` and what belongs to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Busy {
    pub(super) total: Duration,
    pub(super) by_client: Duration,
    pub(super) by_application: Duration,
    /// Until when it is summed, while it goes on.
    until: Option<Instant>,
}

impl Busy {
    /// What it has waited for up to now; nothing if there is nothing to send any more.
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
    fn times_are_sums_of_what_was_waited_for() {
        let start = clock::now();
        let mut busy = Busy::default();
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
