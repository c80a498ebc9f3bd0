//! Packet-timed round trips: draft-ietf-ccwg-bbr-06 §5.5.1.

/// Counts rounds. A round ends when a packet sent after its start is delivered.
//= bbr-06 5.5.1-1
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RoundCounter {
    next_round_delivered: u64,
    count: u64,
    started: bool,
}

impl RoundCounter {
    /// A connection after `count` rounds.
    #[cfg(test)]
    pub(crate) fn starting_at(count: u64) -> Self {
        Self { count, ..Self::default() }
    }

    /// Rounds so far.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Whether the feedback just processed began a round.
    pub(crate) fn started(&self) -> bool {
        self.started
    }

    /// StartRound(): the next round ends only with a packet sent from now on. `delivered` is
    /// C.delivered.
    //= bbr-06 5.5.1-4
    pub(crate) fn restart(&mut self, delivered: u64) {
        self.next_round_delivered = delivered;
    }

    /// No packet was delivered by this feedback, so no round began.
    pub(crate) fn clear_start(&mut self) {
        self.started = false;
    }

    /// UpdateRound(). `prior_delivered` is C.delivered at the departure of the newest packet
    /// delivered now; `delivered` is the current C.delivered. Returns true if a round began.
    //= bbr-06 5.5.1-2
    //= rfc9406 4.2-1
    pub(crate) fn update(&mut self, prior_delivered: u64, delivered: u64) -> bool {
        self.started = prior_delivered >= self.next_round_delivered;
        if self.started {
            self.restart(delivered);
            self.count += 1;
        }
        self.started
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    //= rfc9406 4.2-1 test
    //= bbr-06 5.5.1-1 5.5.1-2 test
    fn round_ends_with_a_packet_sent_after_it_began() {
        let mut round = RoundCounter::default();
        assert!(round.update(0, 1_000), "the first delivery ends the round of the handshake");
        assert!(!round.update(0, 2_000), "left before 1000 bytes were delivered");
        assert!(!round.update(999, 3_000));
        assert_eq!((round.count(), round.started()), (1, false));
        assert!(round.update(1_000, 4_000));
        assert_eq!((round.count(), round.started()), (2, true));
        assert!(!round.update(3_999, 5_000));
    }

    #[test]
    //= bbr-06 5.5.1-4 test
    fn a_restarted_round_waits_for_a_packet_sent_from_now_on() {
        let mut round = RoundCounter::default();
        round.update(0, 1_000);
        round.restart(5_000);
        assert!(!round.update(4_999, 6_000));
        assert!(round.update(5_000, 6_000));
    }

    #[test]
    fn feedback_without_delivery_does_not_begin_a_round() {
        let mut round = RoundCounter::default();
        round.update(0, 1_000);
        round.clear_start();
        assert_eq!((round.count(), round.started()), (1, false));
    }
}
