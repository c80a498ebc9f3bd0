//! Deficit round robin over flows, each with its own CoDel, with priority for sparse flows: shared
//! by FQ-CoDel and CAKE (RFC 8290 §4; Shreedhar and Varghese, SIGCOMM 1995).
//!
//! A flow that starts to send joins the list of new flows, which are served before the old ones,
//! until it has used up its initial credits or is empty. Then it moves to the end of the list of
//! old flows, which it only leaves when found empty there (RFC 8290 §4.2). So a flow must wait for
//! a round of the others before it is new again.
//!
//! Unlike in Linux, that also holds if there are no old flows. As in Linux, and as the RFC's
//! explanation in parentheses implies, credits of exactly 0 count as used up, and CoDel's one-MTU
//! rule applies to all flows together: a flow may lose its only packet if it waits too long for
//! others.

use std::collections::VecDeque;

use uncork_units::{Rng, Time};

use super::Queued;
use super::codel::CodelSpec;
use super::control_law::ControlLaw;
use crate::Packet;

/// The default quantum: one full-sized packet. RFC 8290 §5.2.4 and Linux use 1514 bytes, the MTU
/// plus 14 bytes of Ethernet header, which their packet lengths include. Here bytes are IP bytes,
/// as everywhere on a path; with 1514 a flow's first turn would be two full packets.
pub(super) const QUANTUM: u64 = 1500;

/// How flows share the link.
pub(super) trait Shares {
    /// The bytes `flow` may send in `turns` turns, on average at least a fraction of a byte per
    /// turn.
    fn quantum(&mut self, flow: usize, turns: u64, rng: &mut Rng) -> i64;
    /// A number of turns in which `flow` certainly sends no more than `bytes`.
    fn turns_within(&self, flow: usize, bytes: u64) -> u64;
    /// `flow` has used up its initial credits and has more packets: it starts to compete.
    fn joins(&mut self, flow: usize);
    /// `flow` stops competing.
    fn leaves(&mut self, flow: usize);
}

/// The list a flow is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ListMembership {
    /// On no list: the flow is empty.
    Idle,
    /// On the list of new flows.
    New,
    /// On the list of old flows, but not competing: it joined empty.
    Waiting,
    /// On the list of old flows, competing.
    Old,
}

#[derive(Clone, Debug)]
struct DrrFlow<T> {
    packets: VecDeque<Queued<T>>,
    credits: i64,
    place: ListMembership,
    law: ControlLaw,
}

/// The flows, and the packets that wait in them.
#[derive(Clone, Debug)]
pub(super) struct Drr<T> {
    flows: Vec<DrrFlow<T>>,
    /// Bytes waiting in each flow, stored contiguously for the search of the maximum.
    backlogs: Vec<u64>,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    bytes: u64,
    packets: usize,
    /// The largest packet seen, in bytes: serves as the MTU.
    largest: u32,
}

impl<T> Drr<T> {
    /// `flows` flows, all empty.
    pub(super) fn new(flows: usize) -> Self {
        let flow = || DrrFlow {
            packets: VecDeque::new(),
            credits: 0,
            place: ListMembership::Idle,
            law: ControlLaw::default(),
        };
        Self {
            flows: (0..flows).map(|_| flow()).collect(),
            backlogs: vec![0; flows],
            new: VecDeque::with_capacity(flows),
            old: VecDeque::with_capacity(flows),
            bytes: 0,
            packets: 0,
            largest: 0,
        }
    }

    /// Bytes waiting in all flows.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Packets waiting in all flows.
    pub(super) fn packets(&self) -> usize {
        self.packets
    }

    /// Packets waiting in `flow`.
    pub(super) fn packets_of(&self, flow: usize) -> usize {
        self.flows[flow].packets.len()
    }

    /// Whether `flow` is on no list.
    pub(super) fn is_idle(&self, flow: usize) -> bool {
        self.flows[flow].place == ListMembership::Idle
    }

    /// Whether `flow` competes: whether it has joined and not left.
    pub(super) fn is_competing(&self, flow: usize) -> bool {
        self.flows[flow].place == ListMembership::Old
    }

    /// Resets CoDel for `flow`, because another flow takes its place.
    pub(super) fn forget(&mut self, flow: usize) {
        self.flows[flow].law = ControlLaw::default();
    }

    /// Adds a packet of `flow`.
    pub(super) fn enqueue(
        &mut self,
        flow: usize,
        queued: Queued<T>,
        shares: &mut impl Shares,
        rng: &mut Rng,
    ) {
        let bytes = queued.packet.bytes;
        self.bytes += u64::from(bytes);
        self.backlogs[flow] += u64::from(bytes);
        self.packets += 1;
        self.largest = self.largest.max(bytes);
        let state = &mut self.flows[flow];
        state.packets.push_back(queued);
        match state.place {
            ListMembership::Idle => {
                state.place = ListMembership::New;
                state.credits = shares.quantum(flow, 1, rng);
                self.new.push_back(flow);
            }
            ListMembership::Waiting => {
                state.place = ListMembership::Old;
                shares.joins(flow);
            }
            ListMembership::New | ListMembership::Old => {}
        }
    }

    /// The packet that leaves at `now` (RFC 8290 §4.2). Packets dropped by CoDel are passed to
    /// `dropped`.
    pub(super) fn dequeue(
        &mut self,
        now: Time,
        codel: &CodelSpec,
        shares: &mut impl Shares,
        rng: &mut Rng,
        dropped: &mut impl FnMut(Packet<T>),
    ) -> Option<Queued<T>> {
        let mut turns = 0;
        loop {
            let flow = *self.new.front().or_else(|| self.old.front())?;
            if self.flows[flow].credits <= 0 {
                self.requeue(flow, shares);
                self.flows[flow].credits += shares.quantum(flow, 1, rng);
                turns += 1;
                if self.new.is_empty() && turns % self.old.len() == 0 {
                    self.skip_rounds(shares, rng);
                }
            } else if let Some(queued) = self.ask(flow, now, codel, dropped) {
                self.flows[flow].credits -= i64::from(queued.packet.bytes);
                return Some(queued);
            } else if self.flows[flow].place == ListMembership::New {
                self.requeue(flow, shares);
            } else {
                self.retire(flow, shares);
            }
        }
    }

    /// Skips rounds in which every flow only gains credits and none can send. Otherwise, with small
    /// quanta, a packet would cost as many turns as there are flows.
    fn skip_rounds(&mut self, shares: &mut impl Shares, rng: &mut Rng) {
        let mut rounds = u64::MAX;
        for flow in &self.old {
            let owed = self.flows[*flow].credits.min(0).unsigned_abs();
            rounds = rounds.min(shares.turns_within(*flow, owed));
            if rounds == 0 {
                return;
            }
        }
        for flow in &self.old {
            self.flows[*flow].credits += shares.quantum(*flow, rounds, rng);
        }
    }

    /// Moves the flow at the head of its list to the end of the list of old flows.
    fn requeue(&mut self, flow: usize, shares: &mut impl Shares) {
        let state = &mut self.flows[flow];
        if state.place != ListMembership::New {
            self.old.rotate_left(1);
            return;
        }
        self.new.pop_front();
        self.old.push_back(flow);
        if state.packets.is_empty() {
            state.place = ListMembership::Waiting;
        } else {
            state.place = ListMembership::Old;
            shares.joins(flow);
        }
    }

    /// The flow at the head of the list of old flows is empty.
    fn retire(&mut self, flow: usize, shares: &mut impl Shares) {
        self.old.pop_front();
        if std::mem::replace(&mut self.flows[flow].place, ListMembership::Idle)
            == ListMembership::Old
        {
            shares.leaves(flow);
        }
    }

    /// The next packet of `flow` that CoDel does not drop.
    fn ask(
        &mut self,
        flow: usize,
        now: Time,
        codel: &CodelSpec,
        dropped: &mut impl FnMut(Packet<T>),
    ) -> Option<Queued<T>> {
        let mut law = self.flows[flow].law;
        let pop = || {
            let queued = self.pop(flow)?;
            Some((queued, self.bytes <= u64::from(self.largest)))
        };
        let queued = law.dequeue(codel, now, pop, dropped);
        self.flows[flow].law = law;
        queued
    }

    /// Removes the oldest packet of `flow`.
    pub(super) fn pop(&mut self, flow: usize) -> Option<Queued<T>> {
        let queued = self.flows[flow].packets.pop_front()?;
        let bytes = u64::from(queued.packet.bytes);
        self.backlogs[flow] -= bytes;
        self.bytes -= bytes;
        self.packets -= 1;
        Some(queued)
    }

    /// The flow with the most bytes waiting; the first of several equal ones.
    pub(super) fn fattest(&self) -> usize {
        let (mut fattest, mut most) = (0, 0);
        for (flow, bytes) in self.backlogs.iter().enumerate() {
            if *bytes > most {
                (fattest, most) = (flow, *bytes);
            }
        }
        fattest
    }
}

/// The same quantum in bytes for every flow.
pub(super) struct Equal(pub(super) u64);

impl Shares for Equal {
    fn quantum(&mut self, _: usize, turns: u64, _: &mut Rng) -> i64 {
        (self.0 * turns) as i64
    }

    fn turns_within(&self, _: usize, bytes: u64) -> u64 {
        bytes / self.0
    }

    fn joins(&mut self, _: usize) {}

    fn leaves(&mut self, _: usize) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ecn;
    use proptest::prelude::{prop_assert_eq, proptest};

    /// Which flow sends at each departure, for flows that always have a packet of their size.
    fn by_turns(sizes: &[u32], quantum: u64, count: usize) -> Vec<u32> {
        let mut credits = vec![quantum as i64; sizes.len()];
        let mut sent = Vec::new();
        for flow in (0..sizes.len()).cycle() {
            while credits[flow] > 0 && sent.len() < count {
                credits[flow] -= i64::from(sizes[flow]);
                sent.push(flow as u32);
            }
            if sent.len() == count {
                break;
            }
            credits[flow] += quantum as i64;
        }
        sent
    }

    /// Turns after which a flow still may not send: none with a debt of 1499 bytes, one with 1500.
    #[test]
    fn whole_turns_are_skipped() {
        let turns = [0, 1499, 1500, 3001].map(|owed| Equal(QUANTUM).turns_within(0, owed));
        assert_eq!(turns, [0, 0, 1, 2]);
    }

    proptest! {
        /// Packets of many quanta, so that most rounds are skipped.
        #[test]
        fn skipped_rounds_change_nothing(
            sizes in proptest::collection::vec(40_u32..9000, 1..20),
            quantum in 1_u64..2000,
        ) {
            let (mut drr, mut rng) = (Drr::new(sizes.len()), Rng::new(1, 0));
            let shares = &mut Equal(quantum);
            for (flow, bytes) in (0..).zip(&sizes) {
                let packet = Packet { flow, host: 0, bytes: *bytes, ecn: Ecn::Ect0, body: () };
                for _ in 0..100 {
                    let queued = Queued { since: Time::ZERO, packet };
                    drr.enqueue(flow as usize, queued, shares, &mut rng);
                }
            }
            let sent: Vec<u32> = (0..100)
                .filter_map(|_| {
                    let drop = &mut |_| panic!("time stands still");
                    drr.dequeue(Time::ZERO, &CodelSpec::default(), shares, &mut rng, drop)
                })
                .map(|queued| queued.packet.flow)
                .collect();
            prop_assert_eq!(sent, by_turns(&sizes, quantum, 100));
        }
    }
}
