//! Votes that count.

use crate::limits::VOTES_PER_CONTRADICTION;
use crate::network::NetworkEvidence;

/// Votes of flows that are independent of each other: the limits of a verdict are for such.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Votes {
    /// For L4S.
    pub l4s: u32,
    /// For a classic queue.
    pub classic: u32,
    /// That ECN does not work.
    pub no_ecn: u32,
    /// That ECN works.
    pub working: u32,
}

impl Votes {
    /// One of each flow.
    pub(crate) fn of_flows(evidence: &NetworkEvidence) -> Self {
        let NetworkEvidence { flows, l4s, classic, no_ecn, .. } = *evidence;
        Self { l4s, classic, no_ecn, working: flows.saturating_sub(no_ecn) }
    }

    /// Those of an hour. A record has the client's network and not the client, so flows of an hour may be those of one
    /// client. The hour has one vote for what most of its flows show, and a vote against it where more than one flow of
    /// [`VOTES_PER_CONTRADICTION`] contradicts.
    pub(crate) fn of_hour(evidence: &NetworkEvidence) -> Self {
        let Self { l4s, classic, no_ecn, working } = Self::of_flows(evidence);
        let is_classic = classic.saturating_mul(VOTES_PER_CONTRADICTION) > l4s;
        Self {
            l4s: u32::from(l4s > 0 && l4s >= classic),
            classic: u32::from(is_classic),
            no_ecn: u32::from(no_ecn > working),
            working: u32::from(working > 0 && working >= no_ecn),
        }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.l4s = self.l4s.saturating_add(other.l4s);
        self.classic = self.classic.saturating_add(other.classic);
        self.no_ecn = self.no_ecn.saturating_add(other.no_ecn);
        self.working = self.working.saturating_add(other.working);
    }

    /// Whether some flows have no vote of their own.
    pub(crate) fn are_fewer_than(&self, evidence: &NetworkEvidence) -> bool {
        let all = Self::of_flows(evidence);
        self.l4s < all.l4s || self.classic < all.classic || self.no_ecn < all.no_ecn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hour_has_one_vote_and_one_against_it_where_more_than_a_tenth_contradicts() {
        for ((l4s, classic), expected) in [
            ((0, 0), (0, 0)),
            ((30, 0), (1, 0)),
            ((30, 3), (1, 0)),
            ((30, 4), (1, 1)),
            ((2, 2), (1, 1)),
            ((1, 2), (0, 1)),
            ((0, 30), (0, 1)),
        ] {
            let evidence = NetworkEvidence { flows: 40, l4s, classic, ..Default::default() };
            let votes = Votes::of_hour(&evidence);
            assert_eq!((votes.l4s, votes.classic), expected, "{l4s} {classic}");
        }
    }

    #[test]
    fn hour_votes_for_ecn_by_its_majority() {
        let votes =
            |no_ecn| Votes::of_hour(&NetworkEvidence { flows: 9, no_ecn, ..Default::default() });
        assert_eq!((votes(4).no_ecn, votes(4).working), (0, 1));
        assert_eq!((votes(5).no_ecn, votes(5).working), (1, 0));
    }
}
