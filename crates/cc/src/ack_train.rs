//! The length of a train of ACKs: S. Ha, I. Rhee, "Taming the elephants: New TCP slow start",
//! Computer Networks 55 (2011), §3.2.

use uncork_units::{Time, TimeDelta};

/// ACKs further apart than this do not belong to one train.
const MAX_SPACING: TimeDelta = TimeDelta::from_millis(2);

/// Ends the initial slow start of a sender that does not pace. Its window leaves as a burst that
/// the bottleneck spreads into a train; when the ACKs of a round span half the round trip, the next
/// doubling would make the window exceed the path by the whole of its capacity.
///
/// A rise of the delay shows that too late where the buffer is about as large as the path's
/// capacity: the first packets of each round still find the queue empty.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckTrain {
    round: u64,
    start: Time,
    end: Time,
}

impl AckTrain {
    pub(crate) const fn new() -> Self {
        Self { round: 0, start: Time::ZERO, end: Time::ZERO }
    }

    /// An ACK arrived in packet-timed round `round`. True when the train is so long that slow start
    /// is over.
    pub(crate) fn on_ack(&mut self, now: Time, round: u64, min_rtt: TimeDelta) -> bool {
        if round != self.round {
            *self = Self { round, start: now, end: now };
        }
        if now.since(self.end) > MAX_SPACING {
            return false;
        }
        self.end = now;
        now.since(self.start) > min_rtt.divided_by(2)
    }
}
