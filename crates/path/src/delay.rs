//! Propagation: everything comes out as it went in, later.

use std::collections::VecDeque;

use uncork_units::{Time, TimeDelta};

/// A delay of constant length for anything that travels; in slots, if asked for.
#[derive(Clone, Debug)]
pub struct DelayLine<T> {
    delay: TimeDelta,
    /// Things arrive at multiples of this only; zero for no slots.
    slot: TimeDelta,
    travelling: VecDeque<(Time, T)>,
}

impl<T> DelayLine<T> {
    /// A line that holds everything for `delay`.
    pub fn new(delay: TimeDelta) -> Self {
        Self { delay, slot: TimeDelta::ZERO, travelling: VecDeque::new() }
    }

    /// From now on what enters arrives at the end of a slot of this length, together with all else
    /// of its slot, as over a radio link that transmits in turns. Zero ends it.
    pub fn aggregate(&mut self, slot: TimeDelta) {
        self.slot = slot;
    }

    /// Something enters.
    pub fn enter(&mut self, now: Time, item: T) {
        let arrival = self.end_of_slot(now + self.delay);
        // What entered under longer slots is still ahead.
        let ahead = self.travelling.back().map_or(Time::ZERO, |(arrival, _)| *arrival);
        self.travelling.push_back((arrival.max(ahead), item));
    }

    fn end_of_slot(&self, time: Time) -> Time {
        if self.slot.is_zero() {
            return time;
        }
        let slots = time.as_nanos().div_ceil(self.slot.as_nanos());
        Time::from_nanos(slots.saturating_mul(self.slot.as_nanos()))
    }

    /// When the next thing arrives; [`Time::NEVER`] when nothing travels.
    pub fn next_arrival(&self) -> Time {
        self.travelling.front().map_or(Time::NEVER, |(arrival, _)| *arrival)
    }

    /// What has arrived by `now`, oldest first.
    pub fn arrive(&mut self, now: Time) -> Option<T> {
        self.travelling.pop_front_if(|(arrival, _)| *arrival <= now).map(|(_, item)| item)
    }

    /// Whether nothing travels.
    pub fn is_empty(&self) -> bool {
        self.travelling.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_arrives_in_order_and_late() {
        let mut line = DelayLine::new(TimeDelta::from_millis(25));
        let at = |millis| Time::ZERO + TimeDelta::from_millis(millis);
        line.enter(at(0), 'a');
        line.enter(at(10), 'b');
        assert_eq!(line.next_arrival(), at(25));
        assert_eq!(line.arrive(at(24)), None);
        assert_eq!(line.arrive(at(30)), Some('a'));
        assert_eq!(line.arrive(at(30)), None);
        assert_eq!(line.arrive(at(35)), Some('b'));
        assert!(line.is_empty());
        assert_eq!(line.next_arrival(), Time::NEVER);
    }
    #[test]
    fn slots_gather_what_arrives_and_keep_its_order() {
        let mut line = DelayLine::new(TimeDelta::from_millis(25));
        let at = |millis| Time::ZERO + TimeDelta::from_millis(millis);
        line.aggregate(TimeDelta::from_millis(20));
        line.enter(at(0), 'a');
        line.enter(at(15), 'b');
        line.enter(at(16), 'c');
        assert_eq!(line.next_arrival(), at(40));
        assert_eq!((line.arrive(at(40)), line.arrive(at(40))), (Some('a'), Some('b')));
        line.aggregate(TimeDelta::ZERO);
        line.enter(at(17), 'd');
        assert_eq!(line.next_arrival(), at(60));
        assert_eq!((line.arrive(at(60)), line.arrive(at(60))), (Some('c'), Some('d')));
    }
}
