//! CoDel: a FIFO that drops when packets have had a long sojourn time for too long (RFC 8289).
//!
//! Parameters and the single-queue discipline. `control_law` has the control law.

use std::fmt;
use std::ops::RangeInclusive;

use uncork_units::{Time, TimeDelta};

use super::control_law::ControlLaw;
use super::params::{Param, ParamWriter, Params};
use super::{DropTail, QueueError, Queued};
use crate::Packet;

/// Parameters of CoDel, with the defaults of RFC 8289 §5.3 and Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodelSpec {
    /// Acceptable sojourn time of a standing queue.
    pub target: TimeDelta,
    /// How long the sojourn time must exceed the target before the first drop: about the largest
    /// RTT.
    pub interval: TimeDelta,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
}

impl Default for CodelSpec {
    fn default() -> Self {
        Self {
            target: TimeDelta::from_millis(5),
            interval: TimeDelta::from_millis(100),
            ecn: false,
        }
    }
}

impl CodelSpec {
    const TIMES: RangeInclusive<TimeDelta> = TimeDelta::from_micros(1)..=TimeDelta::from_secs(10);

    /// Parses the parameters after `codel`.
    pub(super) fn parse(list: Option<&str>) -> Result<Self, QueueError> {
        let mut spec = Self::default();
        for param in Params::new("codel", &["target", "interval", "ecn", "noecn"], list) {
            spec.set(&param?)?;
        }
        Ok(spec)
    }

    /// Sets one parameter, which must be `target`, `interval`, `ecn` or `noecn`.
    pub(super) fn set(&mut self, param: &Param<'_>) -> Result<(), QueueError> {
        match param.key {
            "target" => self.target = Self::time(param)?,
            "interval" => self.interval = Self::time(param)?,
            word => {
                param.flag()?;
                self.ecn = word == "ecn";
            }
        }
        Ok(())
    }

    /// A time value valid for CoDel.
    pub(super) fn time(param: &Param<'_>) -> Result<TimeDelta, QueueError> {
        param.read(&Self::TIMES, "a time from 1us to 10s, such as 5ms")
    }

    /// Writes the parameters that differ from `default`.
    pub(super) fn write(&self, list: &mut ParamWriter<'_, '_>, default: &Self) -> fmt::Result {
        list.value("target", &self.target, &default.target)?;
        list.value("interval", &self.interval, &default.interval)?;
        list.flag("ecn", "noecn", self.ecn, default.ecn)
    }
}

impl fmt::Display for CodelSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(&mut ParamWriter::new(f, "codel")?, &Self::default())
    }
}

/// A FIFO with CoDel and tail drop.
#[derive(Clone, Debug)]
pub struct Codel<T> {
    spec: CodelSpec,
    fifo: DropTail<T>,
    /// The largest packet seen, in bytes: serves as the MTU.
    largest: u32,
    law: ControlLaw,
}

impl<T> Codel<T> {
    /// A queue for at most `limit_bytes` bytes.
    pub fn new(spec: CodelSpec, limit_bytes: u64) -> Self {
        Self { spec, fifo: DropTail::new(limit_bytes), largest: 0, law: ControlLaw::default() }
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
        self.largest = self.largest.max(packet.bytes);
        self.fifo.enqueue(now, packet, dropped);
    }

    /// The packet that leaves at `now`. Packets that CoDel drops before it are passed to `dropped`.
    pub fn dequeue(&mut self, now: Time, dropped: &mut impl FnMut(Packet<T>)) -> Option<Queued<T>> {
        let Self { fifo, largest, .. } = self;
        let pop = || {
            let queued = fifo.dequeue()?;
            Some((queued, fifo.bytes() <= u64::from(*largest)))
        };
        self.law.dequeue(&self.spec, now, pop, dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ecn;

    fn at_millis(millis: u64) -> Time {
        Time::ZERO + TimeDelta::from_millis(millis)
    }

    fn packet(ecn: Ecn) -> Packet<u64> {
        Packet { flow: 0, host: 0, bytes: 1500, ecn, body: 0 }
    }

    /// Offers three packets every 2 ms to a link of one packet per millisecond, for `millis`.
    /// Returns the times of drops and of marks.
    fn overload(spec: CodelSpec, ecn: Ecn, millis: u64) -> (Vec<u64>, Vec<u64>) {
        let mut queue = Codel::new(spec, 1 << 30);
        let (mut drops, mut marks) = (Vec::new(), Vec::new());
        for now in 0..millis {
            for _ in 0..=now % 2 {
                queue.enqueue(at_millis(now), packet(ecn), &mut |_| panic!("there is room"));
            }
            let left = queue.dequeue(at_millis(now), &mut |_| drops.push(now));
            let left = left.expect("there is more than leaves");
            if left.packet.ecn == Ecn::Ce {
                marks.push(now);
            }
        }
        (drops, marks)
    }

    /// The sojourn time reaches 5 ms about 15 ms after the start. Drops start one interval later.
    #[test]
    fn standing_queue_is_dropped_at_the_rate_of_the_control_law() {
        let (drops, marks) = overload(CodelSpec::default(), Ecn::Ect0, 1000);
        assert_eq!(marks, [0_u64; 0]);
        assert!((110..120).contains(&drops[0]), "{drops:?}");
        let since: Vec<u64> = drops.iter().map(|drop| drop - drops[0]).collect();
        assert_eq!(since[..6], [0, 100, 171, 229, 279, 324]);
    }

    #[test]
    fn marks_occur_exactly_when_drops_would() {
        let marking = CodelSpec { ecn: true, ..CodelSpec::default() };
        let (drops, no_marks) = overload(CodelSpec::default(), Ecn::Ect0, 1000);
        let (no_drops, marks) = overload(marking, Ecn::Ect0, 1000);
        assert_eq!((no_marks.len(), no_drops.len()), (0, 0));
        assert_eq!(marks, drops);
        // Packets without ECN are still dropped.
        assert_eq!(overload(marking, Ecn::NotEct, 1000), (drops, Vec::new()));
    }

    /// One packet is queued at each departure, however slow the link.
    #[test]
    fn queue_of_one_mtu_is_not_dropped() {
        let mut queue = Codel::new(CodelSpec::default(), 1 << 30);
        queue.enqueue(at_millis(0), packet(Ecn::NotEct), &mut |_| panic!("there is room"));
        for step in 1..100 {
            let now = at_millis(step * 50);
            queue.enqueue(now, packet(Ecn::NotEct), &mut |_| panic!("there is room"));
            let left = queue.dequeue(now, &mut |_| panic!("one MTU is left"));
            assert_eq!(left.expect("a packet").since, at_millis((step - 1) * 50));
        }
    }

    #[test]
    fn packets_that_do_not_fit_are_tail_dropped() {
        let mut queue = Codel::new(CodelSpec::default(), 3000);
        let mut lost = Vec::new();
        for body in 0..3 {
            let packet = Packet { body, ..packet(Ecn::Ect0) };
            queue.enqueue(at_millis(0), packet, &mut |packet| lost.push(packet.body));
        }
        assert_eq!((lost, queue.bytes(), queue.packets()), (vec![2], 3000, 2));
    }
}
