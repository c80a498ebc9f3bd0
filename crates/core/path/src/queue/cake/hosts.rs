//! Fair sharing among hosts in CAKE.

use std::collections::BTreeMap;

use uncork_units::Rng;

use crate::queue::drr::{QUANTUM, Shares};

/// The hosts and their numbers of competing flows.
#[derive(Clone, Debug)]
pub(super) struct Hosts {
    /// Index into `competing` by host id.
    pub(super) index: BTreeMap<u32, usize>,
    pub(super) competing: Vec<u32>,
    /// The host of each queue.
    of_flow: Vec<usize>,
}

impl Hosts {
    /// No hosts, and `flows` queues.
    pub(super) fn new(flows: usize) -> Self {
        Self { index: BTreeMap::new(), competing: Vec::new(), of_flow: vec![0; flows] }
    }

    /// Assigns queue `flow` to `host` from now on.
    pub(super) fn assign(&mut self, flow: usize, host: u32) {
        let count = self.competing.len();
        let index = *self.index.entry(host).or_insert(count);
        if index == count {
            self.competing.push(0);
        }
        self.of_flow[flow] = index;
    }

    /// The divisor for the quantum of `flow`.
    fn sharers(&self, flow: usize) -> u64 {
        u64::from(self.competing[self.of_flow[flow]]).max(1)
    }

    fn competing(&mut self, flow: usize) -> &mut u32 {
        &mut self.competing[self.of_flow[flow]]
    }
}

impl Shares for Hosts {
    fn quantum(&mut self, flow: usize, turns: u64, rng: &mut Rng) -> i64 {
        let sharers = self.sharers(flow);
        // Random rounding: rounds up with a probability given by the remainder.
        ((QUANTUM * turns + rng.below(sharers)) / sharers) as i64
    }

    fn turns_within(&self, flow: usize, bytes: u64) -> u64 {
        bytes * self.sharers(flow) / QUANTUM
    }

    fn joins(&mut self, flow: usize) {
        *self.competing(flow) += 1;
    }

    fn leaves(&mut self, flow: usize) {
        *self.competing(flow) -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An eighth of 1500 bytes is 187.5: 10 000 turns have a standard deviation of 50 bytes, and the
    /// test allows five of them. A call for many turns rounds once.
    #[test]
    fn quanta_are_exact_on_average() {
        let (mut hosts, mut rng) = (Hosts::new(8), Rng::new(1, 0));
        for flow in 0..8 {
            hosts.assign(flow, 7);
            hosts.joins(flow);
        }
        let sum: i64 = (0..10_000).map(|_| hosts.quantum(0, 1, &mut rng)).sum();
        assert!(sum.abs_diff(1_875_000) <= 250, "{sum}");
        assert_eq!(hosts.quantum(0, 10_000, &mut rng), 1_875_000);
        assert_eq!(hosts.turns_within(0, 1_875_000), 10_000);
    }
}
