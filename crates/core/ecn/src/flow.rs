//! What one flow has seen.

use serde::{Deserialize, Serialize};

use crate::limits::{MIN_ROUNDS, ROUNDS_PER_CONTRADICTION};
use crate::round::{Round, RoundKind};

/// Counts of a flow, while it sent ECT(1). A record has them when the connection ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FlowEvidence {
    /// Packets acknowledged.
    pub packets: u64,
    /// Of these, marked.
    pub marked: u64,
    /// Rounds: about a round trip, and at least 25 ms.
    pub rounds: u32,
    /// Rounds with marks.
    pub marked_rounds: u32,
    /// Rounds with marks at a queue of at most [`crate::L4S_QUEUE`].
    pub l4s_rounds: u32,
    /// Rounds with few marks and a standing queue of at least [`crate::CLASSIC_QUEUE`].
    pub classic_rounds: u32,
    /// The smallest marked queue of each marked round, in microseconds, summed.
    pub marked_queue_us: u64,
    /// Whether the path clears or mangles the ECN field.
    pub ecn_fails: bool,
    /// Whether the flow's own test found a classic queue.
    pub fell_back: bool,
}

/// What a flow says about its bottleneck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vote {
    /// It marks for L4S.
    L4s,
    /// It marks as a classic queue does.
    Classic,
    /// ECN does not work.
    NoEcn,
    /// The flow saw too little, or both.
    None,
}

impl FlowEvidence {
    /// Adds a round.
    pub fn add(&mut self, round: &Round) {
        self.packets = self.packets.saturating_add(u64::from(round.packets));
        self.marked = self.marked.saturating_add(u64::from(round.marked));
        self.rounds = self.rounds.saturating_add(1);
        let kind = round.kind();
        if kind != RoundKind::Unmarked {
            self.marked_rounds = self.marked_rounds.saturating_add(1);
            let queue = round.marked_queue().as_micros();
            self.marked_queue_us = self.marked_queue_us.saturating_add(queue);
        }
        match kind {
            RoundKind::L4s => self.l4s_rounds = self.l4s_rounds.saturating_add(1),
            RoundKind::Classic => self.classic_rounds = self.classic_rounds.saturating_add(1),
            RoundKind::Unmarked | RoundKind::Unclear => {}
        }
    }

    /// The queues of earlier rounds were measured against a path that was not empty.
    pub(crate) fn forget_kinds(&mut self) {
        let Self { packets, marked, rounds, ecn_fails, fell_back, .. } = *self;
        *self = Self { packets, marked, rounds, ecn_fails, fell_back, ..Self::default() };
    }

    /// The flow's vote.
    pub fn vote(&self) -> Vote {
        let (l4s, classic) = (self.l4s_rounds, self.classic_rounds);
        let shows = |rounds: u32, against: u32| {
            rounds >= MIN_ROUNDS
                && rounds > self.marked_rounds / 2
                && against.saturating_mul(ROUNDS_PER_CONTRADICTION) <= rounds
        };
        if self.ecn_fails {
            Vote::NoEcn
        } else if shows(l4s, classic) {
            Vote::L4s
        } else if shows(classic, l4s) {
            Vote::Classic
        } else {
            Vote::None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(l4s_rounds: u32, classic_rounds: u32, unclear: u32) -> FlowEvidence {
        let marked_rounds = l4s_rounds + classic_rounds + unclear;
        FlowEvidence { marked_rounds, l4s_rounds, classic_rounds, ..FlowEvidence::default() }
    }

    #[test]
    fn vote_needs_eight_rounds_and_a_majority_and_few_contradictions() {
        let (none, l4s, classic) = (Vote::None, Vote::L4s, Vote::Classic);
        for ((low, high, unclear), vote) in [
            ((7, 0, 0), none),
            ((8, 0, 0), l4s),
            ((8, 1, 0), l4s),
            ((15, 2, 0), none),
            ((8, 0, 7), l4s),
            ((8, 0, 8), none),
            ((0, 8, 1), classic),
            ((1, 7, 0), none),
            ((8, 8, 0), none),
        ] {
            assert_eq!(flow(low, high, unclear).vote(), vote, "{low} {high} {unclear}");
        }
    }

    #[test]
    fn l4s_rounds_do_not_count_where_ecn_fails() {
        assert_eq!(FlowEvidence { ecn_fails: true, ..flow(20, 0, 0) }.vote(), Vote::NoEcn);
    }

    #[test]
    fn counts_at_their_limit_do_not_overflow() {
        let full = FlowEvidence { l4s_rounds: u32::MAX, marked_rounds: u32::MAX, ..flow(0, 0, 0) };
        assert_eq!(full.vote(), Vote::L4s);
    }
}
