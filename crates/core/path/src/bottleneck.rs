//! A link with a queue in front of it.

use uncork_units::{Rate, Rng, Time, TimeDelta};

use crate::{LinkRate, Packet, Queue, Queued};

/// A link that sends one packet at a time at its rate and queues the others.
///
/// The packet in transmission is not part of the queue: a buffer of one packet holds one more.
#[derive(Clone, Debug)]
pub struct Bottleneck<T> {
    rate: LinkRate,
    queue: Queue<T>,
    rng: Rng,
    on_wire: Option<OnWire<T>>,
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
    /// Queueing delay, without the packet's own transmission time.
    pub queued_for: TimeDelta,
}

impl<T> Bottleneck<T> {
    /// A link with service `rate` behind `queue`. `rng` supplies the queue's random numbers.
    pub fn new(rate: LinkRate, queue: Queue<T>, rng: Rng) -> Self {
        Self { rate, queue, rng, on_wire: None }
    }

    /// Sets a constant rate from now on and cancels any schedule. A packet in transmission finishes
    /// at the old rate, because its end is already computed.
    pub fn set_rate(&mut self, rate: Rate) {
        self.rate = LinkRate::constant(rate);
    }

    /// Bytes waiting in the queue.
    pub fn queued_bytes(&self) -> u64 {
        self.queue.bytes()
    }

    /// Bytes that the link could send from [`Time::ZERO`] until `time`.
    pub fn capacity(&self, time: Time) -> u64 {
        self.rate.capacity(time)
    }

    /// A packet arrives. It, or others in its place, may be dropped and passed to `dropped`.
    pub fn offer(&mut self, now: Time, packet: Packet<T>, dropped: &mut impl FnMut(Packet<T>)) {
        if self.on_wire.is_some() {
            self.queue.enqueue(now, packet, &mut self.rng, dropped);
        } else {
            self.start(now, Queued { since: now, packet });
        }
    }

    /// When the packet in transmission will have left; [`Time::NEVER`] when the link is idle.
    pub fn next_departure(&self) -> Time {
        self.on_wire.as_ref().map_or(Time::NEVER, |wire| wire.done)
    }

    /// The packet that has left by `now`, if any; starts the next transmission. Packets that the
    /// queue drops before the next one are passed to `dropped`.
    pub fn depart(
        &mut self,
        now: Time,
        dropped: &mut impl FnMut(Packet<T>),
    ) -> Option<Departure<T>> {
        let wire = self.on_wire.take_if(|wire| wire.done <= now)?;
        if let Some(next) = self.queue.dequeue(wire.done, &mut self.rng, dropped) {
            self.start(wire.done, next);
        }
        Some(Departure { packet: wire.packet, queued_for: wire.queued_for })
    }

    fn start(&mut self, now: Time, Queued { since, packet }: Queued<T>) {
        let done = self.rate.finish(now, packet.bytes);
        self.on_wire = Some(OnWire { packet, queued_for: now.since(since), done });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DropTail, Ecn};
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    fn packet(body: u64) -> Packet<u64> {
        Packet { flow: 0, host: 0, bytes: 1500, ecn: Ecn::NotEct, body }
    }

    /// 12 Mbit/s is a packet of 1500 bytes per millisecond.
    fn link(limit: u64) -> Bottleneck<u64> {
        let queue = Queue::DropTail(DropTail::new(limit));
        Bottleneck::new(LinkRate::constant(Rate::from_mbit(12)), queue, Rng::new(1, 0))
    }

    fn offer(link: &mut Bottleneck<u64>, now: Time, body: u64) -> bool {
        let mut taken = true;
        link.offer(now, packet(body), &mut |_| taken = false);
        taken
    }

    fn depart(link: &mut Bottleneck<u64>, now: Time) -> Option<Departure<u64>> {
        link.depart(now, &mut |_| panic!("drop-tail drops nothing when a packet leaves"))
    }

    fn at_micros(micros: u64) -> Time {
        Time::ZERO + TimeDelta::from_micros(micros)
    }

    #[test]
    fn packets_leave_at_the_rate_of_the_link() {
        let mut link = link(100_000);
        for body in 0..3 {
            assert!(offer(&mut link, Time::ZERO, body));
        }
        for body in 0..3 {
            let due = at_micros(1000 * (body + 1));
            assert_eq!(link.next_departure(), due);
            assert_eq!(depart(&mut link, Time::from_nanos(due.as_nanos() - 1)), None);
            let departure = depart(&mut link, due).expect("done");
            assert_eq!(departure.packet.body, body);
            assert_eq!(departure.queued_for, TimeDelta::from_millis(body));
        }
        assert_eq!(link.next_departure(), Time::NEVER);
    }

    #[test]
    fn queue_limit_excludes_the_packet_in_transmission() {
        let mut link = link(3000);
        let taken: Vec<bool> = (0..4).map(|body| offer(&mut link, Time::ZERO, body)).collect();
        assert_eq!(taken, [true, true, true, false]);
        assert_eq!(link.queued_bytes(), 3000);
    }

    #[test]
    fn rate_change_does_not_affect_the_packet_in_transmission() {
        let mut link = link(100_000);
        offer(&mut link, Time::ZERO, 0);
        offer(&mut link, Time::ZERO, 1);
        link.set_rate(Rate::from_mbit(120));
        assert_eq!(link.next_departure(), at_micros(1000));
        depart(&mut link, at_micros(1000));
        assert_eq!(link.next_departure(), at_micros(1100));
    }

    proptest! {
        /// Every packet leaves once, in order, or is dropped; the link never exceeds its rate.
        #[test]
        fn packets_are_conserved_in_order(
            gaps in proptest::collection::vec(0_u64..2000, 1..200),
            limit in 0_u64..20_000,
        ) {
            let mut link = link(limit);
            let (mut now, mut taken, mut left) = (Time::ZERO, Vec::new(), Vec::new());
            for (body, gap) in (0..).zip(gaps) {
                now += TimeDelta::from_micros(gap);
                while link.next_departure() <= now {
                    left.push((link.next_departure(), depart(&mut link, now).expect("due").packet.body));
                }
                if offer(&mut link, now, body) {
                    taken.push(body);
                }
                prop_assert!(link.queued_bytes() <= limit);
            }
            while let Some(departure) = depart(&mut link, Time::NEVER) {
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
