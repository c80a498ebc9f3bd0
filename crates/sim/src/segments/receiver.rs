//! The client: what has arrived, and when to say so.

use uncork_units::{Time, TimeDelta};

use super::Segment;
use super::ack::{Ack, SACK_BLOCKS};
use super::ranges::{Range, RangeSet};

/// Acknowledge at least every second segment (RFC 9293 §3.8.6.3) ...
const SEGMENTS_PER_ACK: u32 = 2;
/// ... and no later than this: Linux's smallest delayed-ACK timeout.
const DELAYED_ACK: TimeDelta = TimeDelta::from_millis(40);
/// Linux acknowledges each of the first segments at once, to help the server's slow start.
const QUICK_ACKS: u32 = 16;

#[derive(Debug)]
pub(crate) struct Receiver {
    /// The segment after which nothing follows, once known.
    last_seq: Option<u64>,
    next: u64,
    above: RangeSet,
    delivered_bytes: u64,
    /// Segments received and not yet acknowledged, and what the ACK would tell of the newest.
    pending: u32,
    trigger: (u64, u64),
    delayed_ack: Time,
    quick_acks: u32,
    first_byte: Option<Time>,
    complete: Option<Time>,
}

/// Whether a segment is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Now(Ack),
    Later,
}

impl Receiver {
    /// `segments` is the length of the transfer, where it has one.
    pub(crate) fn new(segments: Option<u64>) -> Self {
        Self {
            last_seq: segments.map(|count| count.saturating_sub(1)),
            next: 0,
            above: RangeSet::default(),
            delivered_bytes: 0,
            pending: 0,
            trigger: (0, 0),
            delayed_ack: Time::NEVER,
            quick_acks: QUICK_ACKS,
            first_byte: None,
            complete: None,
        }
    }

    /// Distinct payload bytes that arrived.
    pub(crate) fn delivered_bytes(&self) -> u64 {
        self.delivered_bytes
    }

    /// When the first byte arrived.
    pub(crate) fn first_byte(&self) -> Option<Time> {
        self.first_byte
    }

    /// When the last missing byte arrived.
    pub(crate) fn complete(&self) -> Option<Time> {
        self.complete
    }

    /// When the delayed-ACK timer expires.
    pub(crate) fn next_timer(&self) -> Time {
        self.delayed_ack
    }

    pub(crate) fn on_segment(&mut self, now: Time, segment: Segment) -> Reply {
        let seq = segment.seq;
        let had_hole = self.above.first().is_some();
        let duplicate = seq < self.next || self.above.containing(seq).is_some();
        self.trigger = (seq, segment.tx);
        self.pending += 1;
        if !duplicate {
            self.take(now, segment);
        }
        // RFC 5681 §4.2: out-of-order segments, and those that fill a hole, are acknowledged at once.
        let out_of_order = duplicate || had_hole || self.above.first().is_some();
        if out_of_order || self.pending >= SEGMENTS_PER_ACK || self.is_quick(seq) {
            return Reply::Now(self.ack(duplicate));
        }
        if self.delayed_ack == Time::NEVER {
            self.delayed_ack = now + DELAYED_ACK;
        }
        Reply::Later
    }

    /// The delayed-ACK timer expired.
    pub(crate) fn on_timer(&mut self, now: Time) -> Option<Ack> {
        (self.delayed_ack <= now).then(|| self.ack(false))
    }

    fn is_quick(&mut self, seq: u64) -> bool {
        let quick = self.quick_acks > 0;
        self.quick_acks = self.quick_acks.saturating_sub(1);
        quick || self.last_seq == Some(seq)
    }

    fn take(&mut self, now: Time, segment: Segment) {
        self.first_byte.get_or_insert(now);
        self.delivered_bytes += u64::from(segment.bytes);
        if segment.seq == self.next {
            self.next += 1;
            if let Some(lowest) = self.above.first().filter(|range| range.start == self.next) {
                self.next = lowest.end;
                self.above.remove_below(lowest.end);
            }
        } else {
            self.above.insert(Range { start: segment.seq, end: segment.seq + 1 }, |_| ());
        }
        if self.last_seq.is_some_and(|last| self.next > last) {
            self.complete.get_or_insert(now);
        }
    }

    fn ack(&mut self, duplicate: bool) -> Ack {
        self.pending = 0;
        self.delayed_ack = Time::NEVER;
        let mut ack = Ack {
            cumulative: self.next,
            sack: [Range::default(); SACK_BLOCKS],
            blocks: 0,
            trigger: self.trigger,
            duplicate,
        };
        // RFC 2018 §4: first the block with the newest segment. The highest block repeats what an
        // earlier ACK told, which guards against lost ACKs.
        let newest = self.above.containing(self.trigger.0);
        let highest = self.above.last().filter(|range| Some(*range) != newest);
        for block in [newest, highest].into_iter().flatten() {
            ack.sack[usize::from(ack.blocks)] = block;
            ack.blocks += 1;
        }
        ack
    }
}
