//! The host's path: one queue, with random faults for packets and ACKs.

use uncork_units::{Rng, Time, TimeDelta};

/// Fate of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fate {
    Dropped,
    /// Its ACK arrives at this time.
    Acked {
        at: Time,
        is_marked: bool,
    },
}

/// A drop-tail queue of `buffer` bytes before a link of `rate` bytes per second, `delay` away.
#[derive(Debug)]
pub(crate) struct Network {
    rng: Rng,
    base_rate: u64,
    base_delay: u64,
    rate: u64,
    delay: u64,
    buffer: u64,
    /// Per thousand packets: how many are lost, reordered, marked.
    loss: u64,
    reordering: u64,
    marks: u64,
    /// ACKs are aggregated to multiples of this many nanoseconds.
    aggregation: u64,
    idle_from: u64,
    /// Until then nothing arrives: packets are dropped, or their ACKs delayed.
    outage_until: u64,
    outage_drops: bool,
}

impl Network {
    pub(crate) fn new(mut rng: Rng) -> Self {
        let base_rate = 100_000 << rng.below(5);
        let base_delay =
            [8, 25, 60, 150, 300][rng.below(5) as usize] * 1_000_000 + rng.below(1_000_000);
        let bdp = base_rate * base_delay / 1_000_000_000;
        let buffer = (bdp * (1 + rng.below(16)) / 4).max(6_000);
        Self {
            rng,
            base_rate,
            base_delay,
            rate: base_rate,
            delay: base_delay,
            buffer,
            loss: 0,
            reordering: 0,
            marks: 0,
            aggregation: 0,
            idle_from: 0,
            outage_until: 0,
            outage_drops: false,
        }
    }

    /// Changes the conditions; returns for how long.
    pub(crate) fn change(&mut self, now: Time) -> TimeDelta {
        let rng = &mut self.rng;
        let mut one_of = |choices: &[u64]| choices[rng.below(choices.len() as u64) as usize];
        self.rate = self.base_rate * one_of(&[4, 4, 4, 4, 4, 2, 6, 12]) / 4;
        self.delay = self.base_delay * one_of(&[8, 8, 8, 8, 8, 8, 9, 12]) / 8;
        self.loss = one_of(&[0, 0, 0, 0, 0, 2, 10, 40, 150]);
        self.reordering = one_of(&[0, 0, 0, 0, 3, 30]);
        self.marks = one_of(&[0, 0, 0, 0, 0, 0, 10, 100]);
        self.aggregation = one_of(&[0, 0, 0, 1, 5, 20, 60]) * 1_000_000;
        if one_of(&[0, 0, 0, 0, 0, 1]) == 1 {
            let length = one_of(&[100, 400, 1_500, 4_000]) * 1_000_000;
            self.outage_until = now.as_nanos() + length;
            self.outage_drops = one_of(&[0, 1]) == 1;
        }
        TimeDelta::from_millis(one_of(&[100, 300, 1_000, 2_000, 4_000, 8_000]))
    }

    pub(crate) fn transmit(&mut self, now: Time, bytes: u64) -> Fate {
        let now = now.as_nanos();
        let service = bytes * 1_000_000_000 / self.rate;
        // Random jitter, because equal intervals would make exact ties common.
        let service = service * (90 + self.rng.below(20)) / 100 + self.rng.below(1_000);
        let start = self.idle_from.max(now);
        let is_full = (start - now) * self.rate / 1_000_000_000 + bytes > self.buffer;
        let is_out = now < self.outage_until && self.outage_drops;
        if is_full || is_out || self.rng.below(1_000) < self.loss {
            return Fate::Dropped;
        }
        self.idle_from = start + service;
        let mut at = self.idle_from + self.delay;
        if self.rng.below(1_000) < self.reordering {
            at += self.rng.below(self.delay);
        }
        if at < self.outage_until {
            at = self.outage_until;
        }
        if self.aggregation > 0 {
            at = at.div_ceil(self.aggregation) * self.aggregation + 17;
        }
        let is_marked = self.rng.below(1_000) < self.marks;
        Fate::Acked { at: Time::from_nanos(at), is_marked }
    }
}
