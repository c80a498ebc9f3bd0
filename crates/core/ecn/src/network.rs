//! The sum over the flows of a client network.

use serde::{Deserialize, Serialize};

use crate::concurrent::PairEvidence;
use crate::flow::{FlowEvidence, Vote};

/// The evidence of a client network: sums, so parts of it merge in any order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NetworkEvidence {
    /// Flows that sent ECT(1).
    pub flows: u32,
    /// Votes for L4S.
    pub l4s: u32,
    /// Votes for a classic queue.
    pub classic: u32,
    /// Flows without working ECN.
    pub no_ecn: u32,
    /// Flows that got marks.
    pub marked_flows: u32,
    /// Flows with their own finding of a classic queue.
    pub fell_back: u32,
    /// Rounds with marks.
    pub marked_rounds: u64,
    /// The smallest marked queue of each, in microseconds, summed.
    pub marked_queue_us: u64,
    /// Comparisons of flows at the same time.
    pub pairs: PairEvidence,
}

impl NetworkEvidence {
    /// Adds a flow that has ended.
    pub fn add(&mut self, flow: &FlowEvidence) {
        let vote = flow.vote();
        self.merge(&Self {
            flows: 1,
            l4s: u32::from(vote == Vote::L4s),
            classic: u32::from(vote == Vote::Classic),
            no_ecn: u32::from(vote == Vote::NoEcn),
            marked_flows: u32::from(flow.marked > 0),
            fell_back: u32::from(flow.fell_back),
            marked_rounds: u64::from(flow.marked_rounds),
            marked_queue_us: flow.marked_queue_us,
            pairs: PairEvidence::default(),
        });
    }

    /// Adds the comparisons of a client's flows.
    pub fn add_pairs(&mut self, pairs: PairEvidence) {
        self.pairs.merge(pairs);
    }

    /// Adds the evidence of another time or another server.
    pub fn merge(&mut self, other: &Self) {
        self.flows = self.flows.saturating_add(other.flows);
        self.l4s = self.l4s.saturating_add(other.l4s);
        self.classic = self.classic.saturating_add(other.classic);
        self.no_ecn = self.no_ecn.saturating_add(other.no_ecn);
        self.marked_flows = self.marked_flows.saturating_add(other.marked_flows);
        self.fell_back = self.fell_back.saturating_add(other.fell_back);
        self.marked_rounds = self.marked_rounds.saturating_add(other.marked_rounds);
        self.marked_queue_us = self.marked_queue_us.saturating_add(other.marked_queue_us);
        self.pairs.merge(other.pairs);
    }

    /// The mean over marked rounds of the smallest queue that was marked, in milliseconds.
    pub fn marked_queue_ms(&self) -> Option<f64> {
        let rounds = self.marked_rounds;
        (rounds > 0).then(|| self.marked_queue_us as f64 / rounds as f64 / 1000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_flow() -> impl Strategy<Value = FlowEvidence> {
        let rounds = (0..30_u32, 0..30_u32, 0..30_u32);
        (rounds, 0..100_u64, any::<bool>(), any::<bool>()).prop_map(
            |((l4s_rounds, classic_rounds, unclear), marked, ecn_fails, fell_back)| FlowEvidence {
                packets: 1000,
                marked,
                rounds: 90,
                marked_rounds: l4s_rounds + classic_rounds + unclear,
                l4s_rounds,
                classic_rounds,
                marked_queue_us: marked * 100,
                ecn_fails,
                fell_back,
            },
        )
    }

    fn sum(flows: &[FlowEvidence]) -> NetworkEvidence {
        let mut sum = NetworkEvidence::default();
        for flow in flows {
            sum.add(flow);
        }
        sum
    }

    proptest! {
        #[test]
        fn sum_of_parts_in_any_order_is_that_of_all(
            flows in proptest::collection::vec(any_flow(), 0..20),
            at in 0..20_usize,
        ) {
            let (one, other) = flows.split_at(at.min(flows.len()));
            let mut parts = sum(other);
            parts.merge(&sum(one));
            prop_assert_eq!(parts, sum(&flows));
        }
    }

    #[test]
    fn evidence_written_and_read_is_the_same_and_absent_counts_are_zero() {
        let evidence = NetworkEvidence { flows: 3, l4s: 2, ..NetworkEvidence::default() };
        let text = serde_json::to_string(&evidence).expect("JSON");
        assert_eq!(serde_json::from_str::<NetworkEvidence>(&text).expect("evidence"), evidence);
        let short: NetworkEvidence = serde_json::from_str(r#"{"flows":3,"l4s":2}"#).expect("older");
        assert_eq!(short, evidence);
    }
}
