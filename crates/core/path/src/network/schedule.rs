//! The order of events: one entry for each source of events, not for each packet.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use uncork_units::Time;

use super::calendar::Calendar;

/// A source of events. Each source has its own queue or deadline; the schedule only stores when to
/// check it. The schedule's size depends on the network, not on the packets in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventSource<E> {
    /// A link to the clients has sent a packet.
    LinkDown(u32),
    /// A link to the servers has sent a packet.
    LinkUp(u32),
    /// The network card of a flow's server has sent a packet.
    Card(u32),
    /// A packet arrives at the end of a delay line to the clients.
    LineDown(u32),
    /// A packet arrives at the end of a delay line to the servers.
    LineUp(u32),
    /// An event of the caller.
    Host(E),
}

/// Events by time. At equal times link 0 to the clients is first; the others keep their scheduling
/// order.
#[derive(Debug)]
pub(super) struct Schedule<E> {
    /// Link 0 to the clients. It is often the only link and has an event per packet. Keeping it out
    /// of the heaps saves a third of their work.
    first_link: Time,
    /// All other links.
    links: BinaryHeap<ScheduledEvent<E>>,
    /// Everything else: each paced flow has a few.
    others: Calendar<E>,
    scheduled: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ScheduledEvent<E> {
    pub(super) time: Time,
    pub(super) order: u64,
    pub(super) source: EventSource<E>,
}

impl<E: Copy> Schedule<E> {
    pub(super) fn new() -> Self {
        let (links, others) = (BinaryHeap::new(), Calendar::new());
        Self { first_link: Time::NEVER, links, others, scheduled: 0 }
    }

    /// A packet has arrived at a link or left it. The current packet is in transmission until
    /// `next`.
    #[inline]
    pub(super) fn link_at(&mut self, link: EventSource<E>, was_idle: bool, next: Time) {
        if matches!(link, EventSource::LinkDown(0)) {
            self.first_link = next;
        } else if was_idle && next < Time::NEVER {
            let entry = self.entry(next, link);
            self.links.push(entry);
        }
    }

    /// The link with the next event has sent its packet and transmits another one until `next`.
    #[inline]
    pub(super) fn link_again(&mut self, link: EventSource<E>, next: Time) {
        if matches!(link, EventSource::LinkDown(0)) {
            self.first_link = next;
        } else if next == Time::NEVER {
            self.links.pop();
        } else if let Some(mut entry) = self.links.peek_mut() {
            self.scheduled += 1;
            (entry.time, entry.order) = (next, self.scheduled);
        }
    }

    /// A delay line or the caller has an event at `time`.
    pub(super) fn at(&mut self, time: Time, source: EventSource<E>) {
        let entry = self.entry(time, source);
        self.others.push(entry);
    }

    /// Reschedules the source of the next event, which is not a link, at `time`; [`Time::NEVER`]
    /// removes it. This is one operation instead of two.
    pub(super) fn again(&mut self, time: Time) {
        if time == Time::NEVER {
            self.others.pop();
        } else if let Some(next) = self.others.peek() {
            let source = next.source;
            let entry = self.entry(time, source);
            self.others.replace(entry);
        }
    }

    fn entry(&mut self, time: Time, source: EventSource<E>) -> ScheduledEvent<E> {
        self.scheduled += 1;
        ScheduledEvent { time, order: self.scheduled, source }
    }

    /// The next event. It remains the next until [`Self::link_again`] or [`Self::again`].
    pub(super) fn next(&self) -> Option<(Time, EventSource<E>)> {
        let next = match (self.links.peek(), self.others.peek()) {
            (Some(link), Some(other)) if link > other => Some(link),
            (link, None) => link,
            (_, other) => other,
        };
        match next {
            Some(next) if next.time < self.first_link => Some((next.time, next.source)),
            _ if self.first_link < Time::NEVER => Some((self.first_link, EventSource::LinkDown(0))),
            _ => None,
        }
    }

    /// The time of the next link event and of the next other event; [`Time::NEVER`] if none.
    pub(super) fn next_times(&self) -> (Time, Time) {
        let time = |next: Option<&ScheduledEvent<E>>| next.map_or(Time::NEVER, |next| next.time);
        (time(self.links.peek()).min(self.first_link), time(self.others.peek()))
    }
}

/// Reversed, so that the heap's maximum is the earliest entry.
impl<E> Ord for ScheduledEvent<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

impl<E> PartialOrd for ScheduledEvent<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> ScheduledEvent<E> {
    /// Time and sequence number as one integer: one comparison instead of two branches.
    fn key(&self) -> u128 {
        u128::from(self.time.as_nanos()) << 64 | u128::from(self.order)
    }
}

impl<E> PartialEq for ScheduledEvent<E> {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}

impl<E> Eq for ScheduledEvent<E> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_in_order() {
        let at = Time::from_nanos;
        let mut schedule = Schedule::new();
        schedule.at(at(5), EventSource::Host('a'));
        schedule.at(at(3), EventSource::LineUp(7));
        schedule.link_at(EventSource::LinkUp(0), true, at(5));
        schedule.link_at(EventSource::LinkDown(0), true, at(5));
        schedule.link_at(EventSource::LinkUp(3), true, Time::NEVER);
        schedule.link_at(EventSource::LinkUp(0), false, at(9));
        assert_eq!(schedule.next_times(), (at(5), at(3)));
        assert_eq!(schedule.next(), Some((at(3), EventSource::LineUp(7))));
        schedule.again(at(5));
        assert_eq!(schedule.next(), Some((at(5), EventSource::LinkDown(0))));
        schedule.link_again(EventSource::LinkDown(0), Time::NEVER);
        assert_eq!(schedule.next(), Some((at(5), EventSource::Host('a'))));
        schedule.again(Time::NEVER);
        assert_eq!(schedule.next(), Some((at(5), EventSource::LinkUp(0))));
        schedule.link_again(EventSource::LinkUp(0), at(6));
        assert_eq!(schedule.next(), Some((at(5), EventSource::LineUp(7))));
        schedule.again(Time::NEVER);
        assert_eq!(schedule.next_times(), (at(6), Time::NEVER));
        assert_eq!(schedule.next(), Some((at(6), EventSource::LinkUp(0))));
        schedule.link_again(EventSource::LinkUp(0), Time::NEVER);
        assert_eq!(schedule.next(), None);
    }
}
