//! Step marking: a FIFO that marks each ECN-capable packet above a fixed sojourn time.

use std::fmt;
use std::ops::RangeInclusive;

use uncork_units::{Time, TimeDelta};

use super::params::{ParamWriter, Params};
use super::{DropTail, QueueError, Queued};
use crate::Packet;

/// Parameters of a queue with step marking, as switches in data centres have it (RFC 8257 §3.1, there in bytes), and as
/// the low-latency queue of DualPI2 has with a range of 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepSpec {
    /// ECN-capable packets that have waited this long are marked.
    pub threshold: TimeDelta,
}

impl Default for StepSpec {
    fn default() -> Self {
        Self { threshold: TimeDelta::from_millis(1) }
    }
}

impl StepSpec {
    const THRESHOLDS: RangeInclusive<TimeDelta> =
        TimeDelta::from_micros(1)..=TimeDelta::from_secs(10);

    /// Parses the parameters after `step`.
    pub(super) fn parse(list: Option<&str>) -> Result<Self, QueueError> {
        let mut spec = Self::default();
        for param in Params::new("step", &["threshold"], list) {
            let expected = "a time from 1us to 10s, such as 1ms";
            spec.threshold = param?.read(&Self::THRESHOLDS, expected)?;
        }
        Ok(spec)
    }
}

impl fmt::Display for StepSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let default = Self::default();
        ParamWriter::new(f, "step")?.value("threshold", &self.threshold, &default.threshold)
    }
}

/// A FIFO with step marking and tail drop.
#[derive(Clone, Debug)]
pub struct StepMarking<T> {
    spec: StepSpec,
    fifo: DropTail<T>,
}

impl<T> StepMarking<T> {
    /// A queue for at most `limit_bytes` bytes.
    pub fn new(spec: StepSpec, limit_bytes: u64) -> Self {
        Self { spec, fifo: DropTail::new(limit_bytes) }
    }

    /// Bytes waiting.
    pub fn bytes(&self) -> u64 {
        self.fifo.bytes()
    }

    /// Packets waiting.
    pub fn packets(&self) -> usize {
        self.fifo.packets()
    }

    /// Adds a packet, or passes it to `dropped` if it does not fit.
    pub fn enqueue(&mut self, now: Time, packet: Packet<T>, dropped: &mut impl FnMut(Packet<T>)) {
        self.fifo.enqueue(now, packet, dropped);
    }

    /// The packet that leaves at `now`. The last one is not marked, as in [`super::DualPi2`]: on a slow link one packet
    /// takes longer than the threshold.
    pub fn dequeue(&mut self, now: Time) -> Option<Queued<T>> {
        let mut queued = self.fifo.dequeue()?;
        if now.since(queued.since) >= self.spec.threshold && self.fifo.packets() > 0 {
            queued.packet.mark();
        }
        Some(queued)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ecn;

    fn at_micros(micros: u64) -> Time {
        Time::ZERO + TimeDelta::from_micros(micros)
    }

    fn fill(queue: &mut StepMarking<u64>, packets: u64, ecn: Ecn) -> u64 {
        let mut dropped = 0;
        for body in 0..packets {
            let packet = Packet { flow: 0, host: 0, bytes: 1500, ecn, body };
            queue.enqueue(Time::ZERO, packet, &mut |_| dropped += 1);
        }
        dropped
    }

    #[test]
    fn packets_above_the_threshold_are_marked_except_for_the_last() {
        for (ecn, marks) in [
            (Ecn::Ect1, [false, true, true, false]),
            (Ecn::Ect0, [false, true, true, false]),
            (Ecn::NotEct, [false; 4]),
        ] {
            let mut queue = StepMarking::new(StepSpec::default(), 1 << 20);
            assert_eq!(fill(&mut queue, 4, ecn), 0);
            let marked = [999, 1000, 2000, 3000].map(|micros| {
                queue.dequeue(at_micros(micros)).expect("a packet").packet.ecn == Ecn::Ce
            });
            assert_eq!(marked, marks, "{ecn:?}");
        }
    }

    #[test]
    fn packets_that_do_not_fit_are_tail_dropped() {
        let mut queue = StepMarking::new(StepSpec::default(), 3000);
        assert_eq!(fill(&mut queue, 3, Ecn::Ect1), 1);
        assert_eq!((queue.bytes(), queue.packets()), (3000, 2));
    }
}
