//! A queue of events in buckets of time: an event of the next milliseconds costs the same however many there are.

use std::collections::BinaryHeap;

use super::schedule::ScheduledEvent;

/// A bucket is 2^14 ns long: the packets of a link of 1 Gbit/s are 12 µs apart, and most of their events stay in the
/// present bucket. Ten thousand flows at 10 Mbit/s fill one with 136 departures.
const BUCKET_BITS: u32 = 14;
/// Buckets ahead of the present one: 8.4 ms.
const BUCKETS: usize = 512;
/// The end of a list.
const NONE: u32 = u32::MAX;

/// Events in the order of their keys. A heap has those of the present bucket, lists those of the buckets ahead, and
/// another heap those of later times, which are mostly timeouts.
#[derive(Debug)]
pub(super) struct Calendar<E> {
    /// Not empty, unless all is.
    present: BinaryHeap<ScheduledEvent<E>>,
    /// The number of the first bucket ahead.
    ahead: u64,
    /// The first event of each bucket ahead; the bucket's number modulo `BUCKETS` is its place.
    lists: Vec<u32>,
    /// A bit for each list that is not empty.
    occupied: [u64; BUCKETS / 64],
    in_lists: usize,
    entries: Vec<ListedEvent<E>>,
    free: u32,
    later: BinaryHeap<ScheduledEvent<E>>,
}

#[derive(Debug)]
struct ListedEvent<E> {
    event: ScheduledEvent<E>,
    next: u32,
}

impl<E: Copy> Calendar<E> {
    pub(super) fn new() -> Self {
        Self {
            present: BinaryHeap::new(),
            ahead: 0,
            lists: vec![NONE; BUCKETS],
            occupied: [0; BUCKETS / 64],
            in_lists: 0,
            entries: Vec::new(),
            free: NONE,
            later: BinaryHeap::new(),
        }
    }

    /// The next event.
    #[inline]
    pub(super) fn peek(&self) -> Option<&ScheduledEvent<E>> {
        self.present.peek()
    }

    pub(super) fn push(&mut self, event: ScheduledEvent<E>) {
        self.place(event);
        self.turn();
    }

    /// Removes the next event.
    pub(super) fn pop(&mut self) {
        self.present.pop();
        self.turn();
    }

    /// Puts `event` in the place of the next one.
    pub(super) fn replace(&mut self, event: ScheduledEvent<E>) {
        if bucket(&event) < self.ahead {
            if let Some(mut next) = self.present.peek_mut() {
                *next = event;
            }
        } else {
            self.present.pop();
            self.place(event);
            self.turn();
        }
    }

    fn place(&mut self, event: ScheduledEvent<E>) {
        let bucket = bucket(&event);
        if bucket < self.ahead {
            self.present.push(event);
        } else if bucket - self.ahead < BUCKETS as u64 {
            self.list(event, bucket as usize % BUCKETS);
        } else {
            self.later.push(event);
        }
    }

    fn list(&mut self, event: ScheduledEvent<E>, place: usize) {
        let next = std::mem::replace(&mut self.lists[place], self.free);
        let entry = ListedEvent { event, next };
        if let Some(free) = self.entries.get_mut(self.free as usize) {
            self.free = std::mem::replace(free, entry).next;
        } else {
            self.lists[place] = self.entries.len() as u32;
            self.entries.push(entry);
        }
        self.occupied[place / 64] |= 1 << (place % 64);
        self.in_lists += 1;
    }

    /// Makes the next bucket with events the present one if the present one has none left.
    #[inline]
    fn turn(&mut self) {
        if self.present.is_empty() {
            self.turn_to_next();
        }
    }

    #[inline(never)]
    fn turn_to_next(&mut self) {
        if self.in_lists > 0 {
            let place = self.next_occupied();
            self.ahead += (place as u64).wrapping_sub(self.ahead) % BUCKETS as u64 + 1;
            self.take_list(place);
        } else if let Some(first) = self.later.peek() {
            self.ahead = bucket(first) + 1;
        }
        while let Some(event) = self.later.peek()
            && (bucket(event) < self.ahead || bucket(event) - self.ahead < BUCKETS as u64)
        {
            let event = *event;
            self.later.pop();
            self.place(event);
        }
    }

    /// The place of the first bucket ahead with events.
    fn next_occupied(&self) -> usize {
        let first = self.ahead as usize % BUCKETS;
        let (word, bit) = (first / 64, first % 64);
        let here = self.occupied[word] >> bit;
        if here != 0 {
            return first + here.trailing_zeros() as usize;
        }
        let words = self.occupied.len();
        // The first word again, last, for the places before `first`.
        let others = (1..=words).map(|step| (word + step) % words);
        let found = others.into_iter().find(|word| self.occupied[*word] != 0);
        found.map_or(first, |word| 64 * word + self.occupied[word].trailing_zeros() as usize)
    }

    fn take_list(&mut self, place: usize) {
        let mut next = std::mem::replace(&mut self.lists[place], NONE);
        self.occupied[place / 64] &= !(1 << (place % 64));
        while let Some(entry) = self.entries.get_mut(next as usize) {
            self.present.push(entry.event);
            let after = std::mem::replace(&mut entry.next, self.free);
            self.free = std::mem::replace(&mut next, after);
            self.in_lists -= 1;
        }
    }
}

/// The number of an event's bucket.
fn bucket<E>(event: &ScheduledEvent<E>) -> u64 {
    event.time.as_nanos() >> BUCKET_BITS
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uncork_units::Time;

    use super::*;
    use crate::network::schedule::EventSource;

    fn event(nanos: u64, order: u64) -> ScheduledEvent<()> {
        ScheduledEvent { time: Time::from_nanos(nanos), order, source: EventSource::Host(()) }
    }

    proptest! {
        /// As a heap does, with times in one bucket, in all that are ahead, and far beyond.
        #[test]
        fn events_come_as_from_a_heap(
            steps in proptest::collection::vec((0_u8..4, 0_u32..5, 0_u64..5000), 1..400),
        ) {
            let (mut calendar, mut heap) = (Calendar::new(), BinaryHeap::new());
            let mut now = 0;
            for (order, (action, scale, offset)) in (0..).zip(steps) {
                let new = event(now + (offset << (5 * scale)), order);
                match action {
                    0 => {
                        calendar.pop();
                        heap.pop();
                    }
                    1 if !heap.is_empty() => {
                        calendar.replace(new);
                        heap.pop();
                        heap.push(new);
                    }
                    _ => {
                        calendar.push(new);
                        heap.push(new);
                    }
                }
                let key = |event: &ScheduledEvent<()>| (event.time, event.order);
                prop_assert_eq!(calendar.peek().map(key), heap.peek().map(key));
                now = heap.peek().map_or(now, |next| next.time.as_nanos());
            }
        }
    }
}
