//! Whether marks come from a classic queue (RFC 9331 §4.3, "monitoring").
//!
//! A queue for L4S marks when it holds about a millisecond. A classic one marks only when a queue of several
//! milliseconds has stood for some time (RFC 8289: 5 ms; RFC 8033: 15 ms). So the smallest RTT of a round trip with marks
//! shows which it is. Unlike the mean, it does not rise with jitter.
//!
//! It is compared with the smallest RTT of full packets. That of the handshake is shorter by the time that a full packet takes
//! on each link, which is 12 ms at 1 Mbit/s.

use uncork_units::{Time, TimeDelta};

use crate::event::RttSample;

/// A queue that stands above this while packets are marked is not one for L4S.
const MAX_L4S_QUEUE: TimeDelta = TimeDelta::from_millis(3);
/// Packets that a queue for L4S may hold even if they take longer than that: two wait (Th_len, RFC 9332 appendix A.1), and a
/// third is on the link.
const MAX_L4S_PACKETS: u64 = 3;
/// How long a smallest RTT counts: at least this, at most twice as long. A path that has become longer is known by then.
const MIN_RTT_AGE: TimeDelta = TimeDelta::from_secs(60);
/// Periods with a standing queue, less those without, that show a classic queue. A queue for L4S stands that long only
/// after its rate has fallen far.
const LIMIT: u8 = 24;

/// Times are in microseconds, of 32 bits: a kernel keeps one per connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClassicQueueTest {
    /// The smallest RTT of full packets in this span of [`MIN_RTT_AGE`], and in the one before.
    min_rtt: [u32; 2],
    /// The number of the span.
    span: u32,
    /// The smallest RTT of the period.
    floor: u32,
    score: u8,
}

impl ClassicQueueTest {
    pub(super) fn new(now: Time) -> Self {
        Self { min_rtt: [u32::MAX; 2], span: span(now), floor: u32::MAX, score: 0 }
    }

    /// An acknowledgement of at least one full packet.
    pub(super) fn on_ack(&mut self, rtt: Option<RttSample>) {
        if let Some(rtt) = rtt {
            self.floor = self.floor.min(micros(rtt.latest));
        }
    }

    /// A period of about a round trip ends, in which packets took `packet_time` at the flow's rate. Only periods with
    /// marks show what kind of queue marks.
    //= rfc9331 4.3-4 4.3-5
    pub(super) fn end_period(&mut self, now: Time, had_marks: bool, packet_time: TimeDelta) {
        let floor = core::mem::replace(&mut self.floor, u32::MAX);
        self.age(now);
        self.min_rtt[0] = self.min_rtt[0].min(floor);
        if !had_marks || floor == u32::MAX {
            return;
        }
        let standing = floor.saturating_sub(self.min_rtt[0].min(self.min_rtt[1]));
        let stands = standing > micros(MAX_L4S_QUEUE.max(packet_time.times(MAX_L4S_PACKETS)));
        self.score = if stands { self.score + 1 } else { self.score.saturating_sub(1) };
    }

    /// Forgets what is older than two spans.
    fn age(&mut self, now: Time) {
        let span = span(now);
        if span != self.span {
            let follows = span == self.span.wrapping_add(1);
            self.min_rtt = [u32::MAX, if follows { self.min_rtt[0] } else { u32::MAX }];
            self.span = span;
        }
    }

    pub(super) fn is_classic(&self) -> bool {
        self.score >= LIMIT
    }
}

fn span(now: Time) -> u32 {
    (now.as_nanos() / MIN_RTT_AGE.as_nanos()) as u32
}

fn micros(time: TimeDelta) -> u32 {
    u32::try_from(time.as_micros()).unwrap_or(u32::MAX)
}
