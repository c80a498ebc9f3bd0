//! Propagation: everything comes out as it went in, later.

use std::collections::VecDeque;

use uncork_units::{Time, TimeDelta};

/// A delay of constant length for anything that travels.
#[derive(Clone, Debug)]
pub struct DelayLine<T> {
    delay: TimeDelta,
    travelling: VecDeque<(Time, T)>,
}

impl<T> DelayLine<T> {
    /// A line that holds everything for `delay`.
    pub fn new(delay: TimeDelta) -> Self {
        Self { delay, travelling: VecDeque::new() }
    }

    /// Something enters.
    pub fn enter(&mut self, now: Time, item: T) {
        self.travelling.push_back((now + self.delay, item));
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
}
