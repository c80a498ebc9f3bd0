//! The event loop's order: one entry per source of events.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use uncork_units::Time;

/// Who has something to do. Each source keeps its own queue or deadline; the schedule only knows
/// when to look, so that it stays as small as the number of hosts, not of packets in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A flow begins.
    Start(u32),
    /// A link to clients finished a packet.
    Link(u32),
    /// A link to servers finished a packet.
    Uplink(u32),
    /// Something comes out of a line to clients.
    Downstream(u32),
    /// Something comes out of a line to servers.
    Upstream(u32),
    /// A server's pacing or loss timer.
    SenderTimer(u32),
    /// A client's delayed-ACK timer.
    ReceiverTimer(u32),
    /// An application's timer.
    AppTimer(u32),
    /// Time to write the series.
    Sample,
}

/// Events by time; of events at the same time those of link 0 come first, then the others in the order
/// in which they were scheduled.
#[derive(Debug)]
pub(crate) struct Schedule {
    heap: BinaryHeap<Entry>,
    scheduled: u64,
    /// Where there is one link, it has an event for every packet of every flow: a place of its own
    /// spares the heap a third of its work.
    link: Time,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    time: Time,
    order: u64,
    source: Source,
}

impl Schedule {
    pub(crate) fn new() -> Self {
        Self { heap: BinaryHeap::new(), scheduled: 0, link: Time::NEVER }
    }

    /// Schedules anything but link 0.
    pub(crate) fn at(&mut self, time: Time, source: Source) {
        self.scheduled += 1;
        self.heap.push(Entry { time, order: self.scheduled, source });
    }

    /// When link 0 finishes its packet; [`Time::NEVER`] when it is idle.
    pub(crate) fn link_at(&mut self, time: Time) {
        self.link = time;
    }

    /// What comes next. The entry stays until [`Self::done`] or [`Self::again`] is called.
    pub(crate) fn next(&self) -> Option<(Time, Source)> {
        let next = self.heap.peek().map(|entry| (entry.time, entry.source));
        let link = (self.link < Time::NEVER).then_some((self.link, Source::Link(0)));
        match (link, next) {
            (Some(link), Some(next)) if next.0 < link.0 => Some(next),
            (None, next) => next,
            (link, _) => link,
        }
    }

    /// The entry that came next is dealt with. Not for link 0, which has no entry.
    pub(crate) fn done(&mut self) {
        self.heap.pop();
    }

    /// The source of the entry that came next has its next event at `time`: one move in the heap
    /// instead of two.
    pub(crate) fn again(&mut self, time: Time) {
        self.scheduled += 1;
        if let Some(mut entry) = self.heap.peek_mut() {
            entry.time = time;
            entry.order = self.scheduled;
        }
    }

    /// [`Self::again`], or [`Self::done`] if the next event is never.
    pub(crate) fn again_or_done(&mut self, time: Time) {
        if time == Time::NEVER { self.done() } else { self.again(time) }
    }
}

/// The heap's greatest entry is the earliest.
impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Entry {
    /// Time, then order, as one number: one comparison instead of two branches.
    fn key(&self) -> u128 {
        u128::from(self.time.as_nanos()) << 64 | u128::from(self.order)
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}

impl Eq for Entry {}
