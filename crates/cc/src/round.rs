//! Packet-timed round trips: draft-ietf-ccwg-bbr-06 §5.5.1.

/// Counts rounds: a round ends when a packet is delivered that left after the round began.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RoundCounter {
    next_round_delivered: u64,
    count: u64,
    started: bool,
}

impl RoundCounter {
    /// Rounds so far.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Whether the feedback just processed began a round.
    pub(crate) fn started(&self) -> bool {
        self.started
    }

    /// StartRound(): let the next round end only with a packet sent from now on. `delivered` is
    /// C.delivered.
    pub(crate) fn restart(&mut self, delivered: u64) {
        self.next_round_delivered = delivered;
    }

    /// No packet was delivered by this feedback, so no round began.
    pub(crate) fn clear_start(&mut self) {
        self.started = false;
    }

    /// UpdateRound(): `prior_delivered` is C.delivered at the departure of the newest packet
    /// delivered now, `delivered` is C.delivered now. True when a round began.
    pub(crate) fn update(&mut self, prior_delivered: u64, delivered: u64) -> bool {
        self.started = prior_delivered >= self.next_round_delivered;
        if self.started {
            self.restart(delivered);
            self.count += 1;
        }
        self.started
    }
}
