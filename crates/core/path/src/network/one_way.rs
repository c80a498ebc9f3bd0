//! One direction of all paths: links, then delay lines.

use uncork_units::Time;

use super::Body;
use super::lines::DelayLines;
use super::schedule::{EventSource, Schedule};
use crate::links::Links;
use crate::{Cause, Departure, Packet};

/// The links and delay lines to the clients if `DOWN`, else to the servers.
#[derive(Debug)]
pub(super) struct OneWay<B, const DOWN: bool> {
    pub(super) links: Links<B>,
    pub(super) lines: DelayLines<Packet<B>>,
}

impl<B: Body, const DOWN: bool> OneWay<B, DOWN> {
    pub(super) fn new(links: Links<B>) -> Self {
        Self { links, lines: DelayLines::new() }
    }

    fn link<E>(link: u32) -> EventSource<E> {
        if DOWN { EventSource::LinkDown(link) } else { EventSource::LinkUp(link) }
    }

    /// A packet comes to a link.
    #[inline]
    pub(super) fn offer<E: Copy>(
        &mut self,
        (now, link): (Time, u32),
        packet: Packet<B>,
        schedule: &mut Schedule<E>,
        dropped: &mut impl FnMut(Packet<B>, Cause),
    ) {
        let was_idle = self.links.next_departure(link) == Time::NEVER;
        self.links.offer(now, link, packet, dropped);
        let next = self.links.next_departure(link);
        schedule.link_at(Self::link(link), was_idle, next);
    }

    /// A link has sent a packet, which moves to the next link. Returns it if that was the last
    /// link.
    #[inline]
    pub(super) fn depart<E: Copy>(
        &mut self,
        (now, link): (Time, u32),
        path: impl FnOnce(u32) -> u32,
        schedule: &mut Schedule<E>,
        dropped: &mut impl FnMut(Packet<B>, Cause),
    ) -> Option<Packet<B>> {
        let departure = self.links.depart(now, link, dropped);
        schedule.link_again(Self::link(link), self.links.next_departure(link));
        let Departure { mut packet, queued_for } = departure?;
        if DOWN {
            packet.body.crossed(queued_for);
        }
        match self.links.after(link, || path(packet.flow) as usize) {
            Some(next) => {
                self.offer((now, next), packet, schedule, dropped);
                None
            }
            None => Some(packet),
        }
    }

    /// A packet that has crossed all links enters its delay line.
    #[inline]
    pub(super) fn propagate<E: Copy>(
        &mut self,
        (now, line): (Time, u32),
        packet: Packet<B>,
        schedule: &mut Schedule<E>,
    ) {
        let bytes = packet.bytes;
        if let Some(next) = self.lines.all[line as usize].enter(now, packet, bytes) {
            let line = if DOWN { EventSource::LineDown(line) } else { EventSource::LineUp(line) };
            schedule.at(next, line);
        }
    }

    /// The packet at the end of a delay line. `None` if it was overtaken by a packet with a later
    /// event.
    #[inline]
    pub(super) fn arrive<E: Copy>(
        &mut self,
        (now, line): (Time, u32),
        schedule: &mut Schedule<E>,
    ) -> Option<Packet<B>> {
        let line = &mut self.lines.all[line as usize];
        let packet = line.arrive(now);
        let next = if packet.is_some() { line.next_arrival() } else { Time::NEVER };
        schedule.again(next);
        packet
    }
}
