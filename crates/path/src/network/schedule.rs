//! What happens next.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use uncork_units::Time;

use super::Direction;

/// Who has something to do. Each keeps its own queue; the schedule only knows when to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Source {
    /// A link in this direction finished a packet.
    Link(Direction, u32),
    /// A packet comes out of a delay line in this direction.
    Line(Direction, u32),
}

/// Events by time; of events at the same time those of link 0 to clients come first, then the others in the order in which
/// they were scheduled, as in the simulator.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    links: Events,
    lines: Events,
    scheduled: u64,
}

/// The earliest first.
type Events = BinaryHeap<Reverse<Event>>;

/// When, in which order of those at that time, and whose.
type Event = (Time, u64, Source);

impl Schedule {
    /// `source` has something to do at `time`, unless that is never.
    pub(crate) fn at(&mut self, time: Time, source: Source) {
        if time == Time::NEVER {
            return;
        }
        self.scheduled += 1;
        let order = if source == Source::Link(Direction::Down, 0) { 0 } else { self.scheduled };
        let events = match source {
            Source::Link(..) => &mut self.links,
            Source::Line(..) => &mut self.lines,
        };
        events.push(Reverse((time, order, source)));
    }

    /// When the next event comes at a link, and when a packet arrives; [`Time::NEVER`] if none
    /// does.
    pub(crate) fn next(&self) -> (Time, Time) {
        let time = |event: Option<Event>| event.map_or(Time::NEVER, |(time, ..)| time);
        (time(first(&self.links)), time(first(&self.lines)))
    }

    /// The next event, if it comes by `now`.
    pub(crate) fn pop(&mut self, now: Time) -> Option<(Time, Source)> {
        let events = match (first(&self.links), first(&self.lines)) {
            (Some(link), Some(line)) if link < line => &mut self.links,
            (Some(_), None) => &mut self.links,
            _ => &mut self.lines,
        };
        first(events).filter(|(time, ..)| *time <= now)?;
        events.pop().map(|Reverse((time, _, source))| (time, source))
    }
}

fn first(events: &Events) -> Option<Event> {
    events.peek().map(|Reverse(event)| *event)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_in_order() {
        let mut schedule = Schedule::default();
        let at = Time::from_nanos;
        let events = [
            (5, Source::Line(Direction::Down, 1)),
            (3, Source::Line(Direction::Up, 7)),
            (5, Source::Link(Direction::Up, 0)),
            (5, Source::Link(Direction::Down, 0)),
            (9, Source::Line(Direction::Down, 1)),
        ];
        for (time, source) in events {
            schedule.at(at(time), source);
        }
        schedule.at(Time::NEVER, Source::Link(Direction::Up, 3));
        assert_eq!(schedule.next(), (at(5), at(3)));
        assert_eq!(schedule.pop(at(2)), None);
        let order: Vec<_> = std::iter::from_fn(|| schedule.pop(at(8))).collect();
        let expected = [1, 3, 0, 2].map(|index: usize| (at(events[index].0), events[index].1));
        assert_eq!(order, expected);
        assert_eq!(schedule.next(), (Time::NEVER, at(9)));
    }
}
