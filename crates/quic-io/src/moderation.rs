//! How long a connection that sends much waits for a batch that is worth a system call.

use std::time::{Duration, Instant};

/// A batch of so many datagrams costs hardly more than half of it for each.
const WORTH_IT: u64 = 32;
/// Waits start so long, and are not kept up when they were not needed for [`FORGET`].
const SHORTEST: Duration = Duration::from_micros(32);
const FORGET: Duration = Duration::from_millis(10);

/// Holds a connection back for a moment after it has sent, so that what the pacer and arriving
/// acknowledgements allow in small pieces goes out together.
///
/// It waits no longer than the millisecond in which BBR wants its send quantum to be sent
/// (draft-ietf-ccwg-bbr-06 §5.6.3), nor than an eighth of the round-trip time; only a connection that
/// sends full packets one turn after the other waits at all, and as long as its batches are small.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moderation {
    wait: Duration,
    last: Option<Instant>,
    held_until: Option<Instant>,
    /// Whether it might have sent something otherwise.
    is_deferred: bool,
}

impl Moderation {
    /// Whether it may send.
    pub(crate) fn admits(&mut self, now: Instant) -> bool {
        self.is_deferred = self.is_held(now);
        !self.is_deferred
    }

    /// When to look again at a connection that wants to be looked at at `wanted`: most likely that is
    /// when the pacer has some credit, and whatever else it is can wait so long.
    pub(crate) fn deadline(&self, now: Instant, wanted: Option<Instant>) -> Option<Instant> {
        match self.held_until {
            Some(held) if self.is_deferred => Some(held),
            Some(held) if self.is_held(now) => wanted.map(|wanted| wanted.max(held)),
            _ => wanted,
        }
    }

    /// It sent so much in its turn at `now`, and has nothing more to send for the moment.
    pub(crate) fn sent(&mut self, now: Instant, datagrams: u64, bytes: u64, longest: Duration) {
        if bytes < 2 * 1200 {
            return; // Acknowledgements, or a small message.
        }
        let since = self.last.map_or(Duration::MAX, |last| now.saturating_duration_since(last));
        self.last = Some(now);
        if since > FORGET {
            self.wait = Duration::ZERO;
        } else if datagrams < WORTH_IT && since <= longest {
            self.wait = (self.wait * 2).max(SHORTEST);
        } else if datagrams > 2 * WORTH_IT {
            self.wait /= 2;
        }
        self.wait = self.wait.min(longest);
        self.held_until = (!self.wait.is_zero()).then(|| now + self.wait);
    }

    /// It is not held back any more.
    pub(crate) fn release(&mut self) {
        self.held_until = None;
        self.is_deferred = false;
    }

    fn is_held(&self, now: Instant) -> bool {
        self.held_until.is_some_and(|until| now < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST: Duration = Duration::from_millis(1);
    const SHORT: Duration = Duration::from_micros(50);

    fn sent(moderation: &mut Moderation, now: Instant, datagrams: u64) -> Duration {
        moderation.sent(now, datagrams, datagrams * 1200, LONGEST);
        moderation.held_until.map_or(Duration::ZERO, |until| until - now)
    }

    #[test]
    fn small_batches_of_a_fast_sender_are_held_back_and_large_ones_are_not() {
        let mut now = crate::worker::now();
        let mut moderation = Moderation::default();
        assert_eq!(sent(&mut moderation, now, 10), Duration::ZERO, "the first is never");
        for _ in 0..10 {
            now += SHORT;
            sent(&mut moderation, now, 4);
        }
        assert_eq!(sent(&mut moderation, now, 4), LONGEST);
        assert_eq!(sent(&mut moderation, now + LONGEST, 40), LONGEST, "worth it");
        assert_eq!(sent(&mut moderation, now + LONGEST * 2, 80), LONGEST / 2, "too long");
        assert_eq!(sent(&mut moderation, now + FORGET * 2, 4), Duration::ZERO, "forgotten");
    }

    #[test]
    fn a_slow_sender_and_acknowledgements_never_wait() {
        let mut now = crate::worker::now();
        let mut moderation = Moderation::default();
        for _ in 0..100 {
            now += Duration::from_millis(5);
            assert_eq!(sent(&mut moderation, now, 5), Duration::ZERO);
        }
        for _ in 0..100 {
            now += SHORT;
            moderation.sent(now, 1, 60, LONGEST);
            assert!(moderation.admits(now));
        }
    }

    #[test]
    fn what_is_deferred_is_done_when_the_wait_is_over() {
        let mut now = crate::worker::now();
        let mut moderation = Moderation::default();
        for _ in 0..10 {
            now += SHORT;
            sent(&mut moderation, now, 4);
        }
        let (late, until) = (now + LONGEST * 500, now + LONGEST);
        assert_eq!(moderation.deadline(now, Some(late)), Some(late), "nothing to send");
        assert_eq!(moderation.deadline(now, Some(now + SHORT)), Some(until), "the pacer's");
        assert!(!moderation.admits(now + SHORT), "an acknowledgement has arrived");
        assert_eq!(moderation.deadline(now + SHORT, Some(late)), Some(until));
        assert!(moderation.admits(until));
        assert_eq!(moderation.deadline(until, Some(late)), Some(late));
    }
}
