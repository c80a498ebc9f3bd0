//! Whether marks come from a classic queue (RFC 9331 §4.3, "monitoring").
//!
//! A queue for L4S marks when it holds about a millisecond. A classic one marks only when a queue of several
//! milliseconds has stood for some time (RFC 8289: 5 ms; RFC 8033: 15 ms). So the smallest RTT of a round trip with marks
//! shows which it is. Unlike the mean, it does not rise with jitter.

use uncork_units::TimeDelta;

use crate::event::RttSample;

/// A queue that stands above this while packets are marked is not one for L4S.
const MAX_L4S_QUEUE: TimeDelta = TimeDelta::from_millis(3);
/// Packets that a queue for L4S may hold even if they take longer than that.
const MAX_L4S_PACKETS: u64 = 2;
/// Periods with a standing queue, less those without, that show a classic queue. A queue for L4S stands that long only
/// after its rate has fallen far.
const LIMIT: u8 = 24;

#[derive(Clone, Copy, Debug)]
pub(super) struct ClassicQueueTest {
    /// The smallest RTT of the connection.
    min_rtt: TimeDelta,
    /// The smallest RTT of the period.
    floor: TimeDelta,
    score: u8,
}

impl Default for ClassicQueueTest {
    fn default() -> Self {
        Self { min_rtt: TimeDelta::MAX, floor: TimeDelta::MAX, score: 0 }
    }
}

impl ClassicQueueTest {
    pub(super) fn on_ack(&mut self, rtt: Option<RttSample>) {
        if let Some(rtt) = rtt {
            self.min_rtt = self.min_rtt.min(rtt.min);
            self.floor = self.floor.min(rtt.latest);
        }
    }

    /// A period of about a round trip ends, in which packets took `packet_time` at the flow's rate. Only periods with
    /// marks show what kind of queue marks.
    //= rfc9331 4.3-4 4.3-5
    pub(super) fn end_period(&mut self, had_marks: bool, packet_time: TimeDelta) {
        let floor = core::mem::replace(&mut self.floor, TimeDelta::MAX);
        if !had_marks || floor == TimeDelta::MAX {
            return;
        }
        let standing = floor - self.min_rtt;
        let stands = standing > MAX_L4S_QUEUE.max(packet_time.times(MAX_L4S_PACKETS));
        self.score = if stands { self.score + 1 } else { self.score.saturating_sub(1) };
    }

    pub(super) fn is_classic(&self) -> bool {
        self.score >= LIMIT
    }
}
