//! Time-based loss detection: RACK, RFC 8985 §6.

use uncork_cc::Lost;
use uncork_units::{Time, TimeDelta};

use super::scoreboard::{Delivered, Scoreboard};

/// RFC 8985 §6.2 step 4: so many segments delivered above a hole leave no doubt.
const DUP_THRESHOLD: u64 = 3;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Rack {
    /// RACK.segment: the transmission, delivered, that left last.
    newest_tx: Option<u64>,
    /// RACK.rtt: its round-trip time.
    rtt: TimeDelta,
    /// RACK.fack: the highest segment delivered.
    highest_seq: Option<u64>,
    reordering_seen: bool,
    /// When the reordering window of the oldest doubtful transmission closes.
    deadline: Time,
}

impl Rack {
    pub(crate) fn new() -> Self {
        Self {
            newest_tx: None,
            rtt: TimeDelta::ZERO,
            highest_seq: None,
            reordering_seen: false,
            deadline: Time::NEVER,
        }
    }

    /// When to look for losses again without an ACK.
    pub(crate) fn deadline(&self) -> Time {
        self.deadline
    }

    /// Steps 1 to 3: which transmission delivered left last, and whether any was overtaken.
    pub(crate) fn on_delivered(&mut self, now: Time, segment: &Delivered) {
        if self.highest_seq.is_some_and(|highest| segment.seq < highest) && !segment.retransmitted {
            self.reordering_seen = true;
        }
        self.highest_seq = self.highest_seq.max(Some(segment.seq));
        // Step 2: if an earlier transmission was acknowledged, nothing is known of the newest one.
        if !segment.ambiguous && self.newest_tx.is_none_or(|newest| segment.tx > newest) {
            self.newest_tx = Some(segment.tx);
            self.rtt = now.since(segment.acked.token.send_time());
        }
    }

    /// Steps 4 and 5: what left before a delivered transmission, a reordering window ago, is lost.
    //= rfc9937 5-3
    pub(crate) fn detect(
        &mut self,
        now: Time,
        board: &mut Scoreboard,
        context: (bool, TimeDelta),
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

    /// §6.3: after a retransmission timeout whatever is a round trip and a reordering window old is
    /// lost, and the transmission that left first in any case.
    pub(crate) fn on_timeout(
        &mut self,
        now: Time,
        board: &mut Scoreboard,
        context: (bool, TimeDelta),
        lost: &mut Vec<Lost>,
    ) {
        self.deadline = Time::NEVER;
        let patience = self.patience(board, context);
        let mut first = true;
        board.declare_lost(lost, |_, sent| std::mem::take(&mut first) || sent + patience <= now);
    }

    /// How long after its departure a transmission is lost, if a later one was delivered: a round
    /// trip and the reordering window, which is nothing once there is no doubt (step 4).
    fn patience(&self, board: &Scoreboard, (in_recovery, min_rtt): (bool, TimeDelta)) -> TimeDelta {
        let certain = in_recovery || board.sacked_segments() >= DUP_THRESHOLD;
        let window =
            if !self.reordering_seen && certain { TimeDelta::ZERO } else { min_rtt.divided_by(4) };
        self.rtt + window
    }
}
