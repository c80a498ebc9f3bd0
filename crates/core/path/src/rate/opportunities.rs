//! Delivery opportunities, as in mahimahi.
//!
//! A line of a mahimahi trace is an opportunity to deliver 1500 bytes at that millisecond. As
//! described in mm-link(1), bytes are counted: one opportunity delivers several small packets or
//! part of a large one; unused capacity is lost; at its end the trace restarts, with the last time
//! as the length of a lap.

use std::sync::Arc;

use uncork_units::{Rate, Ratio, Time, TimeDelta};

use super::UNITS_PER_BYTE;

const NANOS_PER_MS: u64 = 1_000_000;

/// Bytes that an opportunity delivers (mahimahi's `traces/README`).
const BYTES_PER_OPPORTUNITY: u64 = 1500;

/// Rates are reported as the mean over a span of this length; there is none at a single instant.
const RATE_BIN: TimeDelta = TimeDelta::from_millis(100);

/// The times at which a link may send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Opportunities {
    /// Milliseconds, sorted, never empty; the last one is not 0.
    at_ms: Box<[u32]>,
    /// Units delivered per opportunity.
    grant: u64,
}

impl Opportunities {
    /// `at_ms` must be sorted, in milliseconds, with a last value above 0.
    pub(super) fn new(at_ms: Vec<u32>) -> Self {
        Self { at_ms: at_ms.into(), grant: BYTES_PER_OPPORTUNITY * UNITS_PER_BYTE }
    }

    /// Scales each opportunity by `factor`.
    pub(super) fn scaled(&self, factor: Ratio) -> Self {
        Self { at_ms: self.at_ms.clone(), grant: factor.of(self.grant) }
    }

    /// Length of a lap in nanoseconds, never 0.
    pub(super) fn length(&self) -> u64 {
        (u64::from(self.at_ms.last().copied().unwrap_or(0)) * NANOS_PER_MS).max(1)
    }

    pub(super) fn count(&self) -> u64 {
        self.at_ms.len() as u64
    }

    pub(super) fn mean(&self) -> Rate {
        let units = u128::from(self.count()) * u128::from(self.grant);
        let mean = units / u128::from(self.length());
        Rate::from_bytes_per_sec(u64::try_from(mean).unwrap_or(u64::MAX))
    }

    /// The time of opportunity `n` in nanoseconds, counted over all laps.
    fn time_of(&self, n: u64) -> u64 {
        let at = self.at_ms.get((n % self.count()) as usize).copied().unwrap_or(0);
        let lap = (n / self.count()).saturating_mul(self.length());
        lap.saturating_add(u64::from(at) * NANOS_PER_MS)
    }

    /// The number of opportunities up to and including `nanos`.
    fn count_until(&self, nanos: u64) -> u64 {
        let (laps, inside) = (nanos / self.length(), nanos % self.length());
        let in_lap = self.at_ms.partition_point(|at| u64::from(*at) * NANOS_PER_MS <= inside);
        laps.saturating_mul(self.count()).saturating_add(in_lap as u64)
    }
}

/// A link that sends at opportunities.
#[derive(Clone, Debug)]
pub(super) struct OpportunityClock {
    trace: Arc<Opportunities>,
    /// Offset of time zero in the trace, in nanoseconds. All times below count from the trace's
    /// start.
    offset: u64,
    /// Total opportunities; `u64::MAX` if the trace repeats.
    last: u64,
    /// The next opportunity to use.
    next: u64,
    /// When the last packet has left.
    free: u64,
    /// Remaining capacity of the opportunity at `free`.
    spare: u64,
}

impl OpportunityClock {
    pub(super) fn new(trace: Arc<Opportunities>, offset: u64, repeat: bool) -> Self {
        let last = if repeat { u64::MAX } else { trace.count() };
        let next = trace.count_until(offset);
        Self { trace, offset, last, next, free: offset, spare: 0 }
    }

    /// When a packet of `bytes` has been sent, if its transmission begins at `start`. Like mm-link,
    /// which uses due opportunities before it accepts a packet, the link delivers at an instant
    /// later than the arrival. A back-to-back packet shares the instant of the previous one.
    pub(super) fn finish(&mut self, start: Time, bytes: u32) -> Time {
        let start = start.as_nanos().saturating_add(self.offset);
        if start > self.free {
            (self.free, self.spare) = (start, 0);
            self.next = self.trace.count_until(start);
        }
        let need = u64::from(bytes) * UNITS_PER_BYTE;
        if need <= self.spare {
            self.spare -= need;
        } else {
            self.deliver(need - self.spare);
        }
        if self.free == u64::MAX {
            return Time::NEVER;
        }
        Time::from_nanos(self.free - self.offset)
    }

    /// Uses as many opportunities as `need` units take; `need` must be above 0.
    fn deliver(&mut self, need: u64) {
        self.spare = 0;
        let taken = need.div_ceil(self.trace.grant.max(1));
        let next = self.next.saturating_add(taken);
        if self.trace.grant == 0 || next > self.last || next == u64::MAX {
            self.free = u64::MAX;
            return;
        }
        self.next = next;
        self.free = self.trace.time_of(next - 1);
        self.spare = (u128::from(taken) * u128::from(self.trace.grant) - u128::from(need)) as u64;
    }

    /// The mean rate of the 100 ms around `time`.
    pub(super) fn rate_at(&self, time: Time) -> Rate {
        let bin = RATE_BIN.as_nanos();
        let begin = time.as_nanos() / bin * bin;
        let bytes = self.capacity(Time::from_nanos(begin.saturating_add(bin)))
            - self.capacity(Time::from_nanos(begin));
        Rate::of(bytes, RATE_BIN)
    }

    /// Bytes that can be sent until `time`, rounded down.
    pub(super) fn capacity(&self, time: Time) -> u64 {
        let count = |time: u64| self.trace.count_until(time).min(self.last);
        let end = time.as_nanos().saturating_add(self.offset);
        let units = u128::from(count(end) - count(self.offset)) * u128::from(self.trace.grant);
        u64::try_from(units / u128::from(UNITS_PER_BYTE)).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use proptest::prelude::*;

    fn clock(at_ms: &[u32], offset_ms: u64, repeat: bool) -> OpportunityClock {
        let trace = Arc::new(Opportunities::new(at_ms.to_vec()));
        OpportunityClock::new(trace, offset_ms * NANOS_PER_MS, repeat)
    }

    fn ms(millis: u64) -> Time {
        Time::from_nanos(millis * NANOS_PER_MS)
    }

    /// The example of mahimahi's README: a file with the single line `1` is a packet per
    /// millisecond.
    #[test]
    fn one_line_is_12_mbit() {
        let mut link = clock(&[1], 0, true);
        let ends: Vec<Time> = (0..3).map(|_| link.finish(Time::ZERO, 1500)).collect();
        assert_eq!(ends, [ms(1), ms(2), ms(3)]);
        assert_eq!(link.trace.mean(), Rate::from_mbit(12));
        assert_eq!(link.rate_at(ms(12_345)), Rate::from_mbit(12));
        assert_eq!(link.capacity(ms(1000)), 1_500_000);
    }

    #[test]
    fn small_packets_share_and_large_ones_wait() {
        let mut link = clock(&[10, 20, 20, 50], 0, true);
        let ends: Vec<Time> =
            [500, 500, 500, 1400, 400, 1200].map(|bytes| link.finish(Time::ZERO, bytes)).into();
        assert_eq!(ends, [ms(10), ms(10), ms(10), ms(20), ms(20), ms(20)]);
        // 1500 of 3000 bytes at 50 ms, the rest in the next lap.
        assert_eq!(link.finish(Time::ZERO, 3000), ms(60));
    }

    #[test]
    fn unused_opportunities_are_lost() {
        let mut link = clock(&[10, 20, 30], 0, true);
        assert_eq!(link.finish(ms(5), 100), ms(10));
        // 1400 bytes of that opportunity and the whole next one are gone; the one at 30 is too
        // early.
        assert_eq!(link.finish(ms(30), 1500), ms(40));
    }

    #[test]
    fn trace_without_repetition_ends() {
        let mut link = clock(&[10, 20], 0, false);
        assert_eq!(link.finish(Time::ZERO, 1600), ms(20));
        assert_eq!(link.finish(Time::ZERO, 1400), ms(20));
        assert_eq!(link.finish(Time::ZERO, 1), Time::NEVER);
        assert_eq!(link.finish(ms(100), 1), Time::NEVER);
        assert_eq!(link.capacity(Time::NEVER), 3000);
    }

    #[test]
    fn offsets_and_factors() {
        let mut link = clock(&[10, 20, 50], 15, true);
        assert_eq!(link.finish(Time::ZERO, 1500), ms(5));
        assert_eq!(link.finish(Time::ZERO, 1500), ms(35));
        assert_eq!(link.finish(Time::ZERO, 1500), ms(45));
        let double = Arc::new(Opportunities::new(vec![1]).scaled(Ratio::new(2, 1)));
        let mut link = OpportunityClock::new(double, 0, true);
        assert_eq!(link.finish(Time::ZERO, 3000), ms(1));
        let nothing = Arc::new(Opportunities::new(vec![1]).scaled(Ratio::new(0, 1)));
        let mut link = OpportunityClock::new(nothing, 0, true);
        assert_eq!(link.finish(Time::ZERO, 1), Time::NEVER);
    }

    /// A literal mm-link: each opportunity is offered to the packets waiting at that time. Times in
    /// milliseconds; returns when each packet leaves.
    fn letter(at_ms: &[u32], packets: &[(u64, i64)]) -> Vec<u64> {
        let mut waiting: VecDeque<(usize, u64, i64)> =
            packets.iter().enumerate().map(|(n, (at, bytes))| (n, *at, *bytes)).collect();
        let mut left = vec![0; packets.len()];
        let lap = u64::from(*at_ms.last().expect("lines"));
        for base in (0..).map(|n| n * lap) {
            for at in at_ms.iter().map(|at| base + u64::from(*at)) {
                let mut budget = 1500;
                while budget > 0 {
                    let Some(first) = waiting.front_mut().filter(|first| first.1 < at) else {
                        break;
                    };
                    let sent = budget.min(first.2);
                    budget -= sent;
                    first.2 -= sent;
                    if first.2 == 0 {
                        left[first.0] = at;
                        waiting.pop_front();
                    }
                }
                if waiting.is_empty() {
                    return left;
                }
            }
        }
        left
    }

    proptest! {
        #[test]
        fn packets_leave_when_mm_link_lets_them(
            gaps in proptest::collection::vec(0_u32..20, 1..30),
            packets in proptest::collection::vec((0_u64..8, 1_i64..4000), 1..60),
        ) {
            let mut at = 0;
            let mut at_ms: Vec<u32> = gaps.iter().map(|gap| { at += gap; at }).collect();
            at_ms.push(at + 1);
            let mut now = 0;
            let packets: Vec<(u64, i64)> =
                packets.into_iter().map(|(gap, bytes)| { now += gap; (now, bytes) }).collect();
            let expected = letter(&at_ms, &packets);
            let mut link = clock(&at_ms, 0, true);
            let mut free = 0;
            for ((arrival, bytes), expected) in packets.into_iter().zip(expected) {
                // An arrival at the very instant the link becomes idle shares that instant here,
                // but is an instant late in mm-link.
                prop_assume!(arrival != free || arrival == 0);
                free = link.finish(ms(arrival), bytes as u32).as_nanos() / NANOS_PER_MS;
                prop_assert_eq!(free, expected);
            }
        }
    }
}
