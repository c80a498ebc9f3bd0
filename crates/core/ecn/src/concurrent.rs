//! Flows of one client at the same time: whether they wait in the same queue.

use serde::{Deserialize, Serialize};
use uncork_units::{Time, TimeDelta};

use crate::round::Round;

/// Flows of a client that are compared with each other; more are not.
const MAX_FLOWS: usize = 8;

/// Comparisons of a flow with a standing queue with another flow of the same client at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PairEvidence {
    /// The other flow waited, too.
    pub shared: u32,
    /// The other flow passed the queue: each flow has its own.
    pub isolated: u32,
}

impl PairEvidence {
    /// Adds the comparisons of another client, or another time.
    pub fn merge(&mut self, other: Self) {
        self.shared = self.shared.saturating_add(other.shared);
        self.isolated = self.isolated.saturating_add(other.isolated);
    }
}

/// The open connections of one client to this server. They have the same path, so their RTTs differ only by their queues.
#[derive(Clone, Debug, Default)]
pub struct ConcurrentFlows {
    flows: [Option<Recent>; MAX_FLOWS],
    pairs: PairEvidence,
}

/// The latest round of a flow.
#[derive(Clone, Copy, Debug)]
struct Recent {
    flow: u32,
    start: Time,
    end: Time,
    rtt: TimeDelta,
    /// Since when a queue has stood.
    loaded_since: Time,
    /// Whether a flow with a standing queue was compared with this round.
    is_compared: bool,
}

impl ConcurrentFlows {
    /// Takes in a round of the client's connection `flow`, in order of time.
    pub fn on_round(&mut self, flow: u32, round: &Round) {
        let Some(place) = self.place(flow) else { return };
        let before = self.flows[place].filter(|recent| recent.loaded_since < Time::NEVER);
        let loaded_since = match (round.is_loaded(), before) {
            (true, Some(before)) => before.loaded_since,
            (true, None) => round.start,
            (false, _) => Time::NEVER,
        };
        if loaded_since < Time::NEVER {
            self.compare(flow, loaded_since, round);
        }
        let (start, end, rtt) = (round.start, round.end, round.rtt);
        self.flows[place] =
            Some(Recent { flow, start, end, rtt, loaded_since, is_compared: false });
    }

    /// A connection ended.
    pub fn on_end(&mut self, flow: u32) {
        for slot in &mut self.flows {
            if slot.is_some_and(|recent| recent.flow == flow) {
                *slot = None;
            }
        }
    }

    /// The comparisons so far.
    pub fn evidence(&self) -> PairEvidence {
        self.pairs
    }

    fn place(&self, flow: u32) -> Option<usize> {
        let is_its = |slot: &Option<Recent>| slot.is_some_and(|recent| recent.flow == flow);
        let own = self.flows.iter().position(is_its);
        own.or_else(|| self.flows.iter().position(Option::is_none))
    }

    /// Compares the others' rounds within the time in which this flow's queue stood. Nearer to its empty path than to its
    /// queue means that the other did not wait.
    fn compare(&mut self, flow: u32, since: Time, loaded: &Round) {
        let half = loaded.min_rtt + loaded.queue().divided_by(2);
        for other in self.flows.iter_mut().flatten() {
            let is_within = other.start >= since && other.end <= loaded.end;
            if other.flow == flow || other.is_compared || !is_within {
                continue;
            }
            other.is_compared = true;
            let count =
                if other.rtt < half { &mut self.pairs.isolated } else { &mut self.pairs.shared };
            *count = count.saturating_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> TimeDelta = TimeDelta::from_millis;

    /// A round from `start` to `end` with a smallest RTT of `rtt`, on a path of 20 ms.
    fn round((start, end): (u64, u64), rtt: u64) -> Round {
        Round {
            start: Time::ZERO + MS(start),
            end: Time::ZERO + MS(end),
            packets: 40,
            marked: 0,
            min_rtt: MS(20),
            rtt: MS(rtt),
            marked_rtt: MS(rtt),
            packet_time: TimeDelta::from_micros(500),
        }
    }

    /// Flow 1 has a standing queue of 10 ms from 0 to 100 ms; flow 2 has a round within with `rtt`.
    fn next_to_queue(rtt: u64) -> PairEvidence {
        let mut client = ConcurrentFlows::default();
        client.on_round(1, &round((0, 40), 30));
        client.on_round(2, &round((30, 60), rtt));
        client.on_round(1, &round((40, 100), 30));
        client.evidence()
    }

    #[test]
    fn other_flow_that_waits_too_shares_the_queue() {
        assert_eq!(next_to_queue(29), PairEvidence { shared: 1, isolated: 0 });
    }

    #[test]
    fn other_flow_that_passes_the_queue_is_isolated() {
        assert_eq!(next_to_queue(21), PairEvidence { shared: 0, isolated: 1 });
    }

    /// The other flow's own smallest RTT says nothing: it may never have seen the path empty.
    #[test]
    fn other_flow_that_knows_no_empty_path_shares_the_queue() {
        let mut client = ConcurrentFlows::default();
        client.on_round(1, &round((0, 40), 30));
        client.on_round(2, &Round { min_rtt: MS(29), ..round((10, 35), 29) });
        client.on_round(1, &round((40, 80), 30));
        assert_eq!(client.evidence(), PairEvidence { shared: 1, isolated: 0 });
    }

    #[test]
    fn rounds_before_the_queue_stood_or_without_one_are_not_compared() {
        let mut client = ConcurrentFlows::default();
        client.on_round(2, &round((0, 30), 20));
        client.on_round(1, &round((10, 40), 30));
        assert_eq!(client.evidence(), PairEvidence::default(), "began earlier");
        client.on_round(2, &round((41, 60), 20));
        client.on_round(1, &round((40, 80), 21));
        assert_eq!(client.evidence(), PairEvidence::default(), "no queue");
    }

    #[test]
    fn client_with_more_flows_than_places_leaves_the_rest_out_until_others_end() {
        let mut client = ConcurrentFlows::default();
        (0..MAX_FLOWS as u32).for_each(|flow| client.on_round(flow, &round((0, 30), 20)));
        client.on_round(99, &round((0, 90), 30));
        assert!(client.place(99).is_none());
        client.on_end(3);
        client.on_round(99, &round((0, 90), 30));
        assert!(client.place(99).is_some() && client.place(3).is_none());
    }
}
