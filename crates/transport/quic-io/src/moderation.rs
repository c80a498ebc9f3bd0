//! Send moderation: short delays of busy connections for larger batches.

use std::time::{Duration, Instant};

/// Datagrams in a batch beyond which the cost per datagram hardly falls.
const LARGE_BATCH: u64 = 32;
/// The first delay.
const FIRST_WAIT: Duration = Duration::from_micros(32);
/// The delay is reset to zero when nothing was sent for this long.
const RESET_AFTER: Duration = Duration::from_millis(10);

/// Delays a connection briefly after it has sent, so that the small pieces that pacer and
/// acknowledgements allow are sent together.
///
/// The delay is at most the millisecond in which BBR wants its send quantum to be sent
/// (draft-ietf-ccwg-bbr-06 §5.6.3), and at most an eighth of the round-trip time. Only connections
/// that send full packets turn after turn are delayed, and only while their batches are small.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moderation {
    wait: Duration,
    last: Option<Instant>,
    held_until: Option<Instant>,
    /// Whether a turn was skipped because of the delay.
    is_deferred: bool,
}

impl Moderation {
    /// Whether the connection may send now.
    pub(crate) fn admits(&mut self, now: Instant) -> bool {
        self.is_deferred = self.is_held(now);
        !self.is_deferred
    }

    /// The connection's next deadline, given that it wants to run at `wanted`: not before the end of the
    /// delay. `wanted` is usually the pacer's next credit; other reasons can wait that long, too.
    pub(crate) fn deadline(&self, now: Instant, wanted: Option<Instant>) -> Option<Instant> {
        match self.held_until {
            Some(held) if self.is_deferred => Some(held),
            Some(held) if self.is_held(now) => wanted.map(|wanted| wanted.max(held)),
            _ => wanted,
        }
    }

    /// Records a turn at `now` that sent everything. The next delay is at most `longest`.
    pub(crate) fn sent(&mut self, now: Instant, datagrams: u64, bytes: u64, longest: Duration) {
        if bytes < 2 * 1200 {
            return; // Acknowledgements, or a small message.
        }
        let since = self.last.map_or(Duration::MAX, |last| now.saturating_duration_since(last));
        self.last = Some(now);
        if since > RESET_AFTER {
            self.wait = Duration::ZERO;
        } else if datagrams < LARGE_BATCH && since <= longest {
            self.wait = (self.wait * 2).max(FIRST_WAIT);
        } else if datagrams > 2 * LARGE_BATCH {
            self.wait /= 2;
        }
        self.wait = self.wait.min(longest);
        self.held_until = (!self.wait.is_zero()).then(|| now + self.wait);
    }

    /// Ends the delay.
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

    const MAX_DELAY: Duration = Duration::from_millis(1);
    const SHORT: Duration = Duration::from_micros(50);

    fn sent(moderation: &mut Moderation, now: Instant, datagrams: u64) -> Duration {
        moderation.sent(now, datagrams, datagrams * 1200, MAX_DELAY);
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
        assert_eq!(sent(&mut moderation, now, 4), MAX_DELAY);
        assert_eq!(sent(&mut moderation, now + MAX_DELAY, 40), MAX_DELAY, "worth it");
        assert_eq!(sent(&mut moderation, now + MAX_DELAY * 2, 80), MAX_DELAY / 2, "too long");
        assert_eq!(sent(&mut moderation, now + RESET_AFTER * 2, 4), Duration::ZERO, "forgotten");
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
            moderation.sent(now, 1, 60, MAX_DELAY);
            assert!(moderation.admits(now));
        }
    }

    #[test]
    fn deferred_turns_run_when_the_wait_is_over() {
        let mut now = crate::worker::now();
        let mut moderation = Moderation::default();
        for _ in 0..10 {
            now += SHORT;
            sent(&mut moderation, now, 4);
        }
        let (late, until) = (now + MAX_DELAY * 500, now + MAX_DELAY);
        assert_eq!(moderation.deadline(now, Some(late)), Some(late), "nothing to send");
        assert_eq!(moderation.deadline(now, Some(now + SHORT)), Some(until), "the pacer's");
        assert!(!moderation.admits(now + SHORT), "an acknowledgement has arrived");
        assert_eq!(moderation.deadline(now + SHORT, Some(late)), Some(until));
        assert!(moderation.admits(until));
        assert_eq!(moderation.deadline(until, Some(late)), Some(late));
    }
}
