//! The slowest link of a path, with the queue in front of it.

use uncork_units::{Rate, Time, TimeDelta};

use crate::{DropTail, Packet};

/// A link that sends one packet at a time at its rate, and queues the others.
///
/// The packet on the wire is not in the queue: a buffer of one packet holds one besides it.
#[derive(Clone, Debug)]
pub struct Bottleneck<T> {
    rate: Rate,
    /// Rate changes to come, the next one last.
    steps: Vec<RateStep>,
    queue: DropTail<T>,
    on_wire: Option<OnWire<T>>,
}

/// From `at` on the link has another rate. A packet already on the wire finishes at the old one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateStep {
    /// When.
    pub at: Time,
    /// The rate from then on.
    pub rate: Rate,
}

#[derive(Clone, Copy, Debug)]
struct OnWire<T> {
    packet: Packet<T>,
    queued_for: TimeDelta,
    done: Time,
}

/// A packet that left the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure<T> {
    /// The packet.
    pub packet: Packet<T>,
    /// How long it waited in the queue, its own transmission not counted.
    pub queued_for: TimeDelta,
}

impl<T> Bottleneck<T> {
    /// A link of `rate` that changes at each of `steps`, behind `queue`.
    pub fn new(rate: Rate, mut steps: Vec<RateStep>, queue: DropTail<T>) -> Self {
        steps.sort_by_key(|step| std::cmp::Reverse(step.at));
        Self { rate, steps, queue, on_wire: None }
    }

    /// Another rate from now on, until the next of the steps. As with those, a packet on the wire
    /// finishes at the old one.
    pub fn set_rate(&mut self, rate: Rate) {
        self.rate = rate;
    }

    /// Bytes waiting in the queue.
    pub fn queued_bytes(&self) -> u64 {
        self.queue.bytes()
    }

    /// A packet arrives; false when the queue is full and it is lost.
    pub fn offer(&mut self, now: Time, packet: Packet<T>) -> bool {
        if self.on_wire.is_some() {
            return self.queue.enqueue(now, packet);
        }
        self.start(now, now, packet);
        true
    }

    /// When the packet on the wire will have left; [`Time::NEVER`] when the link is idle.
    pub fn next_departure(&self) -> Time {
        self.on_wire.as_ref().map_or(Time::NEVER, |wire| wire.done)
    }

    /// The packet that has left by `now`, if any; the next one starts.
    pub fn depart(&mut self, now: Time) -> Option<Departure<T>> {
        let wire = self.on_wire.take_if(|wire| wire.done <= now)?;
        if let Some((since, packet)) = self.queue.dequeue() {
            self.start(wire.done, since, packet);
        }
        Some(Departure { packet: wire.packet, queued_for: wire.queued_for })
    }

    fn start(&mut self, now: Time, queued_since: Time, packet: Packet<T>) {
        while let Some(step) = self.steps.pop_if(|step| step.at <= now) {
            self.rate = step.rate;
        }
        let done = now + self.rate.time_for(u64::from(packet.bytes));
        self.on_wire = Some(OnWire { packet, queued_for: now.since(queued_since), done });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packet(body: u64) -> Packet<u64> {
        Packet { flow: 0, bytes: 1500, body }
    }

    fn at_micros(micros: u64) -> Time {
        Time::ZERO + TimeDelta::from_micros(micros)
    }

    /// 12 Mbit/s is a packet of 1500 bytes each millisecond.
    #[test]
    fn packets_leave_at_the_rate_of_the_link() {
        let mut link = Bottleneck::new(Rate::from_mbit(12), Vec::new(), DropTail::new(100_000));
        for body in 0..3 {
            assert!(link.offer(Time::ZERO, packet(body)));
        }
        for body in 0..3 {
            let due = at_micros(1000 * (body + 1));
            assert_eq!(link.next_departure(), due);
            assert_eq!(link.depart(Time::from_nanos(due.as_nanos() - 1)), None);
            let departure = link.depart(due).expect("done");
            assert_eq!(departure.packet.body, body);
            assert_eq!(departure.queued_for, TimeDelta::from_millis(body));
        }
        assert_eq!(link.next_departure(), Time::NEVER);
    }

    #[test]
    fn the_queue_holds_its_limit_besides_the_packet_on_the_wire() {
        let mut link = Bottleneck::new(Rate::from_mbit(12), Vec::new(), DropTail::new(3000));
        let taken: Vec<bool> = (0..4).map(|body| link.offer(Time::ZERO, packet(body))).collect();
        assert_eq!(taken, [true, true, true, false]);
        assert_eq!(link.queued_bytes(), 3000);
    }

    #[test]
    fn a_step_spares_the_packet_on_the_wire() {
        let step = RateStep { at: at_micros(500), rate: Rate::from_mbit(120) };
        let mut link = Bottleneck::new(Rate::from_mbit(12), vec![step], DropTail::new(100_000));
        link.offer(Time::ZERO, packet(0));
        link.offer(Time::ZERO, packet(1));
        assert_eq!(link.next_departure(), at_micros(1000));
        link.depart(at_micros(1000));
        assert_eq!(link.next_departure(), at_micros(1100));
    }

    #[test]
    fn a_new_rate_spares_the_packet_on_the_wire_too() {
        let mut link = Bottleneck::new(Rate::from_mbit(12), Vec::new(), DropTail::new(100_000));
        link.offer(Time::ZERO, packet(0));
        link.offer(Time::ZERO, packet(1));
        link.set_rate(Rate::from_mbit(120));
        assert_eq!(link.next_departure(), at_micros(1000));
        link.depart(at_micros(1000));
        assert_eq!(link.next_departure(), at_micros(1100));
    }

    proptest! {
        /// Every packet leaves once, in order, or was refused; the link never exceeds its rate.
        #[test]
        fn packets_are_conserved_in_order(
            gaps in proptest::collection::vec(0_u64..2000, 1..200),
            limit in 0_u64..20_000,
        ) {
            let mut link = Bottleneck::new(Rate::from_mbit(12), Vec::new(), DropTail::new(limit));
            let (mut now, mut taken, mut left) = (Time::ZERO, Vec::new(), Vec::new());
            for (body, gap) in (0..).zip(gaps) {
                now += TimeDelta::from_micros(gap);
                while link.next_departure() <= now {
                    left.push((link.next_departure(), link.depart(now).expect("due").packet.body));
                }
                if link.offer(now, packet(body)) {
                    taken.push(body);
                }
                prop_assert!(link.queued_bytes() <= limit);
            }
            while let Some(departure) = link.depart(Time::NEVER) {
                left.push((Time::NEVER, departure.packet.body));
            }
            let order: Vec<u64> = left.iter().map(|(_, body)| *body).collect();
            prop_assert_eq!(order, taken);
            let millisecond = TimeDelta::from_millis(1);
            let spaced = left.windows(2).all(|pair| {
                pair[1].0 == Time::NEVER || pair[1].0.since(pair[0].0) >= millisecond
            });
            prop_assert!(spaced);
        }
    }
}
