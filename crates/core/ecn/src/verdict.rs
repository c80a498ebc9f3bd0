//! What a network's evidence proves.

use std::fmt;

use serde::{Deserialize, Serialize};
use uncork_units::TimeDelta;

use crate::concurrent::PairEvidence;
use crate::limits::{
    COMPARISONS_PER_ISOLATED, MAX_AGE, MAX_AGE_DAYS, MIN_CLASSIC_LEAD, MIN_ISOLATED, MIN_L4S_VOTES,
    MIN_NO_ECN_LEAD, VOTES_PER_CONTRADICTION,
};
use crate::network::NetworkEvidence;
use crate::votes::Votes;

/// The kind of bottleneck that a client network has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Bottleneck {
    /// A queue for L4S: connections begin with ECT(1).
    L4s,
    /// A classic queue for each flow.
    FlowQueued,
    /// One classic queue.
    Classic,
    /// The path clears or mangles the ECN field.
    NoEcn,
    /// Not proven: the policy's default applies.
    #[default]
    Unknown,
}

impl Bottleneck {
    /// The policy's setting `ecn` for new connections; `None` is the policy's default.
    pub const fn ecn(self) -> Option<&'static str> {
        match self {
            Self::L4s => Some("l4s"),
            Self::FlowQueued | Self::Classic => Some("classic"),
            Self::NoEcn => Some("none"),
            Self::Unknown => None,
        }
    }
}

/// A network's verdict with its evidence. Its text is one sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The kind of bottleneck.
    pub bottleneck: Bottleneck,
    /// The evidence.
    pub evidence: NetworkEvidence,
    /// Its votes, as far as they count.
    pub votes: Votes,
    /// Whether it is unknown only because the evidence is too old.
    pub is_expired: bool,
}

/// What `evidence` proves if each flow has a vote. `age` is that of its newest flow.
pub fn verdict(evidence: &NetworkEvidence, age: TimeDelta) -> Verdict {
    Verdict::of(evidence, Votes::of_flows(evidence), age)
}

impl Verdict {
    /// What these votes of flows with `evidence` prove. `age` is that of the newest flow.
    pub(crate) fn of(evidence: &NetworkEvidence, votes: Votes, age: TimeDelta) -> Self {
        let is_expired = age > MAX_AGE;
        let bottleneck =
            if is_expired { Bottleneck::Unknown } else { proven(votes, evidence.pairs) };
        Self { bottleneck, evidence: *evidence, votes, is_expired }
    }
}

fn proven(votes: Votes, pairs: PairEvidence) -> Bottleneck {
    let Votes { l4s, classic, no_ecn, working } = votes;
    let needed = MIN_L4S_VOTES.saturating_add(VOTES_PER_CONTRADICTION.saturating_mul(classic));
    if no_ecn >= MIN_NO_ECN_LEAD.saturating_add(working) {
        Bottleneck::NoEcn
    } else if l4s >= needed {
        Bottleneck::L4s
    } else if classic < l4s.saturating_add(MIN_CLASSIC_LEAD) {
        Bottleneck::Unknown
    } else if are_isolated(pairs) {
        Bottleneck::FlowQueued
    } else {
        Bottleneck::Classic
    }
}

/// Whether flows pass each other's queues.
fn are_isolated(PairEvidence { shared, isolated }: PairEvidence) -> bool {
    let compared = shared.saturating_add(isolated);
    isolated >= MIN_ISOLATED && isolated.saturating_mul(COMPARISONS_PER_ISOLATED) >= compared
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NetworkEvidence { flows, l4s, classic, no_ecn, marked_flows, pairs, .. } =
            self.evidence;
        match self.bottleneck {
            Bottleneck::L4s => write!(
                f,
                "the bottleneck marks for L4S: {l4s} of {flows} flows had marks at a short queue"
            ),
            Bottleneck::FlowQueued => write!(
                f,
                "the bottleneck has a classic queue for each flow: {classic} of {flows} flows had marks at a standing queue, \
                 which other flows passed in {} of {} comparisons",
                pairs.isolated,
                pairs.isolated.saturating_add(pairs.shared),
            ),
            Bottleneck::Classic => write!(
                f,
                "the bottleneck has a classic queue: {classic} of {flows} flows had marks at a standing queue"
            ),
            Bottleneck::NoEcn => write!(
                f,
                "the path clears or changes ECN: {no_ecn} of {flows} flows could not use it"
            ),
            Bottleneck::Unknown if self.is_expired => {
                write!(f, "unknown: the newest evidence is older than {MAX_AGE_DAYS} days")
            }
            Bottleneck::Unknown if marked_flows == 0 => {
                write!(f, "unknown: none of {flows} flows had marks")
            }
            Bottleneck::Unknown => write!(
                f,
                "unknown: of {marked_flows} flows with marks, {l4s} met a short queue and {classic} a standing one"
            ),
        }?;
        match (self.bottleneck, self.evidence.marked_queue_ms()) {
            (Bottleneck::L4s | Bottleneck::FlowQueued | Bottleneck::Classic, Some(ms)) => {
                write!(f, " ({ms:.1} ms on average)")
            }
            (Bottleneck::Unknown, _)
                if !self.is_expired && self.votes.are_fewer_than(&self.evidence) =>
            {
                write!(f, "; flows that end in the same hour have one vote")
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(l4s: u32, classic: u32) -> NetworkEvidence {
        NetworkEvidence {
            flows: 20,
            l4s,
            classic,
            marked_flows: 12,
            marked_rounds: 100,
            marked_queue_us: 620_000,
            ..NetworkEvidence::default()
        }
    }

    fn called(evidence: &NetworkEvidence) -> Bottleneck {
        verdict(evidence, TimeDelta::ZERO).bottleneck
    }

    #[test]
    fn l4s_needs_three_votes_and_ten_more_for_each_contradiction() {
        let called = [(2, 0), (3, 0), (12, 1), (13, 1), (22, 2)]
            .map(|(l4s, classic)| called(&evidence(l4s, classic)));
        let (unknown, l4s) = (Bottleneck::Unknown, Bottleneck::L4s);
        assert_eq!(called, [unknown, l4s, unknown, l4s, unknown]);
    }

    #[test]
    fn classic_needs_a_lead_of_two_votes() {
        let called =
            [(0, 1), (0, 2), (1, 2), (1, 3)].map(|(l4s, classic)| called(&evidence(l4s, classic)));
        let (unknown, classic) = (Bottleneck::Unknown, Bottleneck::Classic);
        assert_eq!(called, [unknown, classic, unknown, classic]);
    }

    #[test]
    fn flow_queued_needs_three_flows_that_passed_a_queue_and_a_fifth_of_all() {
        let with = |isolated, shared| {
            let pairs = PairEvidence { shared, isolated };
            called(&NetworkEvidence { pairs, ..evidence(0, 3) })
        };
        assert_eq!(with(2, 0), Bottleneck::Classic);
        assert_eq!(with(3, 12), Bottleneck::FlowQueued);
        assert_eq!(with(3, 13), Bottleneck::Classic);
        let pairs = PairEvidence { isolated: 9, shared: 0 };
        let no_votes = NetworkEvidence { pairs, ..evidence(0, 0) };
        assert_eq!(called(&no_votes), Bottleneck::Unknown, "without marks at a standing queue");
    }

    #[test]
    fn no_ecn_needs_three_flows_more_than_all_others() {
        let with = |no_ecn| called(&NetworkEvidence { no_ecn, ..evidence(0, 0) });
        assert_eq!((with(11), with(12)), (Bottleneck::Unknown, Bottleneck::NoEcn));
    }

    #[test]
    fn evidence_older_than_a_week_proves_nothing() {
        let at = |age| verdict(&evidence(9, 0), age);
        assert_eq!(at(MAX_AGE).bottleneck, Bottleneck::L4s);
        let later = at(MAX_AGE + TimeDelta::from_secs(1));
        assert_eq!((later.bottleneck, later.is_expired), (Bottleneck::Unknown, true));
    }

    #[test]
    fn nothing_seen_is_unknown() {
        assert_eq!(called(&NetworkEvidence::default()), Bottleneck::Unknown);
    }

    #[test]
    fn verdict_as_text_is_a_sentence_with_its_evidence() {
        let text = |evidence: &NetworkEvidence| verdict(evidence, TimeDelta::ZERO).to_string();
        let pairs = PairEvidence { isolated: 7, shared: 2 };
        for (evidence, expected) in [
            (
                evidence(9, 0),
                "the bottleneck marks for L4S: 9 of 20 flows had marks at a short queue (6.2 ms on average)",
            ),
            (
                evidence(0, 4),
                "the bottleneck has a classic queue: 4 of 20 flows had marks at a standing queue (6.2 ms on average)",
            ),
            (
                NetworkEvidence { pairs, ..evidence(0, 4) },
                "the bottleneck has a classic queue for each flow: 4 of 20 flows had marks at a standing queue, which \
                 other flows passed in 7 of 9 comparisons (6.2 ms on average)",
            ),
            (
                NetworkEvidence { no_ecn: 19, ..evidence(0, 0) },
                "the path clears or changes ECN: 19 of 20 flows could not use it",
            ),
            (
                evidence(2, 1),
                "unknown: of 12 flows with marks, 2 met a short queue and 1 a standing one",
            ),
            (
                NetworkEvidence { marked_flows: 0, ..evidence(0, 0) },
                "unknown: none of 20 flows had marks",
            ),
        ] {
            assert_eq!(text(&evidence), expected);
        }
        let old = verdict(&evidence(9, 0), TimeDelta::MAX).to_string();
        assert_eq!(old, "unknown: the newest evidence is older than 7 days");
    }
}
