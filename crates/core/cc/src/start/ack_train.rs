//! ACK train length: S. Ha, I. Rhee, "Taming the elephants: New TCP slow start", Computer Networks
//! 55 (2011), §3.2.

use uncork_units::{Time, TimeDelta};

/// ACKs spaced further apart than this belong to different trains.
const MAX_SPACING: TimeDelta = TimeDelta::from_millis(2);

/// Ends the initial slow start of a sender that does not pace. The window leaves as a burst, which
/// the bottleneck spreads into a train. When the ACKs of one round span half the round trip, the
/// next doubling would overshoot the path by a full BDP.
///
/// With a buffer of about one BDP, rising delay is detected too late: the first packets of each
/// round still find an empty queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckTrain {
    round: u64,
    start: Time,
    end: Time,
}

impl AckTrain {
    pub(super) const fn new() -> Self {
        Self { round: 0, start: Time::ZERO, end: Time::ZERO }
    }

    /// Handles an ACK in packet-timed round `round`. Returns true when the train is long enough to
    /// end slow start.
    pub(super) fn on_ack(&mut self, now: Time, round: u64, min_rtt: TimeDelta) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: TimeDelta = TimeDelta::from_millis(50);

    /// When a round of ACKs spaced `spacing_us` microseconds apart triggers the exit.
    fn detected_after(train: &mut AckTrain, round: u64, spacing_us: u64) -> Option<TimeDelta> {
        let start = Time::ZERO + RTT.times(round);
        (0..1_000)
            .map(|ack| TimeDelta::from_micros(spacing_us).times(ack))
            .take_while(|elapsed| *elapsed < RTT)
            .find(|elapsed| train.on_ack(start + *elapsed, round, RTT))
    }

    #[test]
    fn train_of_half_a_round_trip_ends_slow_start() {
        // 20 Mbit/s: a full-sized packet every 600 us.
        let found = detected_after(&mut AckTrain::new(), 1, 600);
        assert_eq!(found, Some(TimeDelta::from_micros(25_200)));
    }

    #[test]
    fn acks_more_than_2_ms_apart_are_not_a_train() {
        assert_eq!(detected_after(&mut AckTrain::new(), 1, 2_001), None);
        assert_eq!(
            detected_after(&mut AckTrain::new(), 1, 2_000),
            Some(TimeDelta::from_millis(26))
        );
    }

    #[test]
    fn gap_ends_the_train_for_the_round() {
        let mut train = AckTrain::new();
        let at = |ms| Time::ZERO + TimeDelta::from_millis(ms);
        assert!(!train.on_ack(at(100), 1, RTT));
        assert!(!train.on_ack(at(103), 1, RTT));
        assert!((104..150).all(|ms| !train.on_ack(at(ms), 1, RTT)));
        // The next round starts its own train.
        assert!((150..=175).all(|ms| !train.on_ack(at(ms), 2, RTT)));
        assert!(train.on_ack(at(176), 2, RTT));
    }
}
