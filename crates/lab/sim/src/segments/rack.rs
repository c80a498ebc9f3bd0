//! Time-based loss detection: RACK, RFC 8985 §6.

use uncork_cc::Lost;
use uncork_units::{Time, TimeDelta};

use super::rtt::RttEstimator;
use super::scoreboard::{Delivered, Scoreboard};

/// RFC 8985 §6.2 step 4: this many segments delivered above a hole indicate a loss.
const DUP_THRESHOLD: u64 = 3;
/// RFC 8985 §6.2 step 4: a widened window is kept for this many recoveries without a spurious
/// retransmission.
const PERSIST: u32 = 16;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Rack {
    /// RACK.segment: the most recently sent transmission that was delivered.
    newest_tx: Option<u64>,
    /// RACK.rtt: its RTT.
    rtt: TimeDelta,
    /// RACK.fack: the highest segment delivered.
    highest_seq: Option<u64>,
    reordering_seen: bool,
    /// RACK.reo_wnd_mult: the window in quarters of min_rtt.
    window_quarters: u64,
    /// RACK.reo_wnd_persist: recoveries until the window returns to one quarter.
    persist: u32,
    /// RACK.dsack_round: further spurious retransmissions do not widen the window until SND.UNA
    /// reaches this.
    widened_until: Option<u64>,
    /// When the reordering window of the oldest pending transmission closes.
    deadline: Time,
}

/// Other sender state used by RACK.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RackContext {
    in_recovery: bool,
    min_rtt: TimeDelta,
    smoothed_rtt: TimeDelta,
}

impl RackContext {
    pub(crate) fn new(in_recovery: bool, rtt: &RttEstimator) -> Self {
        Self { in_recovery, min_rtt: rtt.min(), smoothed_rtt: rtt.smoothed() }
    }
}

impl Rack {
    pub(crate) fn new() -> Self {
        Self {
            newest_tx: None,
            rtt: TimeDelta::ZERO,
            highest_seq: None,
            reordering_seen: false,
            window_quarters: 1,
            persist: 0,
            widened_until: None,
            deadline: Time::NEVER,
        }
    }

    /// When to check for losses if no ACK arrives.
    pub(crate) fn deadline(&self) -> Time {
        self.deadline
    }

    /// Steps 1 to 3: updates the most recently sent delivered transmission and detects reordering.
    pub(crate) fn on_delivered(&mut self, now: Time, segment: &Delivered) {
        if self.highest_seq.is_some_and(|highest| segment.seq < highest) && !segment.retransmitted {
            self.reordering_seen = true;
        }
        self.highest_seq = self.highest_seq.max(Some(segment.seq));
        // Step 2: if an earlier transmission was acknowledged, the newest one may still be in
        // flight.
        if !segment.ambiguous && self.newest_tx.is_none_or(|newest| segment.tx > newest) {
            self.newest_tx = Some(segment.tx);
            self.rtt = now.since(segment.acked.token.send_time());
        }
    }

    /// Step 4: a retransmission was spurious (RFC 2883 D-SACK), so the window was too short. It
    /// grows at most once per round trip, until everything below `next` is acknowledged.
    pub(crate) fn on_needless_repair(&mut self, una: u64, next: u64) {
        if self.widened_until.is_some_and(|round| una < round) {
            return;
        }
        self.widened_until = Some(next);
        self.window_quarters += 1;
        self.persist = PERSIST;
    }

    /// Step 4: recovery is over; the window may shrink again.
    pub(crate) fn on_recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.window_quarters = 1;
        }
    }

    /// Steps 4 and 5: transmissions sent more than a reordering window before a delivered one are
    /// lost.
    //= rfc9937 5-3
    #[inline]
    pub(crate) fn detect(
        &mut self,
        now: Time,
        board: &mut Scoreboard,
        context: RackContext,
        lost: &mut Vec<Lost>,
    ) {
        self.deadline = Time::NEVER;
        let Some(newest) = self.newest_tx else { return };
        let patience = self.patience(board, context);
        let mut deadline = Time::NEVER;
        board.declare_lost(lost, |tx, sent| {
            if tx > newest {
                return false;
            }
            let overdue = sent + patience;
            if overdue > now {
                deadline = overdue;
            }
            overdue <= now
        });
        self.deadline = deadline;
    }

    /// §6.3: after a retransmission timeout, transmissions older than a round trip plus a
    /// reordering window are lost, and the first one in any case.
    pub(crate) fn on_timeout(
        &mut self,
        now: Time,
        board: &mut Scoreboard,
        context: RackContext,
        lost: &mut Vec<Lost>,
    ) {
        self.deadline = Time::NEVER;
        let patience = self.patience(board, context);
        let mut first = true;
        board.declare_lost(lost, |_, sent| std::mem::take(&mut first) || sent + patience <= now);
    }

    /// The age at which a transmission is lost once a later one was delivered: RTT plus reordering
    /// window, which is zero once a loss is certain (step 4).
    fn patience(&self, board: &Scoreboard, context: RackContext) -> TimeDelta {
        let certain = context.in_recovery || board.sacked_segments() >= DUP_THRESHOLD;
        if !self.reordering_seen && certain {
            return self.rtt;
        }
        let window = context.min_rtt.divided_by(4).times(self.window_quarters);
        self.rtt + window.min(context.smoothed_rtt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: TimeDelta = TimeDelta::from_millis(1);

    /// The window of a sender that has seen reordering, in milliseconds, with a min_rtt of 40 ms
    /// and an SRTT of 45 ms.
    fn window(rack: &Rack) -> u64 {
        let context =
            RackContext { in_recovery: true, min_rtt: MS.times(40), smoothed_rtt: MS.times(45) };
        rack.patience(&Scoreboard::default(), context).as_nanos() / 1_000_000
    }

    /// RFC 8985 §6.2, step 4, line by line.
    #[test]
    fn window_follows_spurious_retransmissions() {
        let mut rack = Rack::new();
        assert_eq!(window(&rack), 0, "no reordering seen: no window");
        rack.reordering_seen = true;
        assert_eq!(window(&rack), 10);
        rack.on_needless_repair(0, 10);
        rack.on_needless_repair(9, 20);
        assert_eq!(window(&rack), 20, "once per round trip");
        for una in [10, 20, 30] {
            rack.on_needless_repair(una, una + 10);
        }
        assert_eq!(window(&rack), 45, "at most a round trip");
        for _ in 1..PERSIST {
            rack.on_recovered();
        }
        assert_eq!(window(&rack), 45);
        rack.on_recovered();
        assert_eq!(window(&rack), 10, "sixteen recoveries without a spurious retransmission");
    }
}
