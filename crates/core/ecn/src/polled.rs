//! A flow by its totals from time to time, as a host sees TCP by sock_diag.

use uncork_units::{Time, TimeDelta};

use crate::flow::FlowEvidence;
use crate::limits::{MIN_ROUND, RESOLUTION};
use crate::round::Round;

/// Totals of a connection since its start, as in Linux' `tcp_info`.
#[derive(Clone, Copy, Debug)]
pub struct EcnTotals {
    /// Packets acknowledged (`tcpi_delivered`).
    pub packets: u64,
    /// Of these, marked (`tcpi_delivered_ce`).
    pub marked: u64,
    /// The smoothed RTT now (`tcpi_rtt`).
    pub rtt: TimeDelta,
    /// The smallest RTT (`tcpi_min_rtt`).
    pub min_rtt: TimeDelta,
}

/// The evidence of such a flow while it sends ECT(1). A round is the time between two polls, and its queue is the one now.
///
/// A smoothed RTT lies above the smallest of the round, so it shows L4S less often than [`crate::FlowObserver`] does, and a
/// classic queue more often: both errors lead to the classic answer.
#[derive(Clone, Copy, Debug)]
pub struct PolledFlow {
    evidence: FlowEvidence,
    latest: EcnTotals,
    packet_time: TimeDelta,
    start: Time,
}

impl PolledFlow {
    /// A connection with these totals.
    pub fn new(now: Time, totals: EcnTotals) -> Self {
        let evidence = FlowEvidence::default();
        Self { evidence, latest: totals, packet_time: TimeDelta::MAX, start: now }
    }

    /// Takes in a poll. Polls without new packets, or sooner than a round trip after the last, wait for the next one.
    pub fn on_poll(&mut self, now: Time, totals: EcnTotals) -> Option<Round> {
        let added =
            |now: u64, before: u64| u32::try_from(now.saturating_sub(before)).unwrap_or(u32::MAX);
        let packets = added(totals.packets, self.latest.packets);
        let marked = added(totals.marked, self.latest.marked);
        let elapsed = now.since(self.start);
        if packets == 0 || elapsed < totals.rtt.max(MIN_ROUND) {
            return None;
        }
        if totals.min_rtt + RESOLUTION < self.latest.min_rtt {
            self.evidence.forget_kinds();
        }
        self.packet_time = self.packet_time.min(elapsed.divided_by(u64::from(packets)));
        let EcnTotals { rtt, min_rtt, .. } = totals;
        let (start, end, packet_time) = (self.start, now, self.packet_time);
        let round =
            Round { start, end, packets, marked, min_rtt, rtt, marked_rtt: rtt, packet_time };
        self.evidence.add(&round);
        (self.latest, self.start) = (totals, now);
        Some(round)
    }

    /// The evidence so far.
    pub fn evidence(&self) -> FlowEvidence {
        self.evidence
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::Vote;

    const MS: fn(u64) -> TimeDelta = TimeDelta::from_millis;

    /// Ten polls, one a second, of 1000 packets with 20 marks each.
    fn polled(rtt: u64, min_rtt: u64) -> PolledFlow {
        let totals = |nth: u64| EcnTotals {
            packets: 1000 * nth,
            marked: 20 * nth,
            rtt: MS(rtt),
            min_rtt: MS(min_rtt),
        };
        let mut flow = PolledFlow::new(Time::ZERO, totals(0));
        for nth in 1..=10 {
            flow.on_poll(Time::ZERO + MS(1000 * nth), totals(nth));
        }
        flow
    }

    #[test]
    fn polled_flow_votes_by_its_queue() {
        assert_eq!(polled(21, 20).evidence().vote(), Vote::L4s);
        assert_eq!(polled(30, 20).evidence().vote(), Vote::Classic);
        let evidence = polled(30, 20).evidence();
        assert_eq!((evidence.packets, evidence.marked, evidence.rounds), (10_000, 200, 10));
    }

    #[test]
    fn poll_without_new_packets_or_within_a_round_trip_waits_for_the_next() {
        let mut flow = polled(80, 20);
        let EcnTotals { packets, .. } = flow.latest;
        assert_eq!(flow.on_poll(Time::ZERO + MS(11_000), flow.latest), None);
        let soon = EcnTotals { packets: packets + 9, ..flow.latest };
        let mut sooner = polled(80, 20);
        assert_eq!(sooner.on_poll(Time::ZERO + MS(10_079), soon), None);
        assert_eq!(sooner.on_poll(Time::ZERO + MS(10_080), soon).map(|it| it.packets), Some(9));
    }

    #[test]
    fn lower_minimum_discards_earlier_polls() {
        let mut flow = polled(21, 20);
        let lower = EcnTotals { packets: 10_500, min_rtt: MS(15), ..flow.latest };
        flow.on_poll(Time::ZERO + MS(11_000), lower);
        assert_eq!(flow.evidence().l4s_rounds, 0);
    }
}
