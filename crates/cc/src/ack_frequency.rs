//! How often the receiver should acknowledge: draft-ietf-ccwg-bbr-06 §4.1.3.3, in the terms
//! of draft-ietf-quic-ack-frequency.

use uncork_units::TimeDelta;

/// What to ask the receiver for, where the transport can: an ACK_FREQUENCY frame has the first two,
/// an IMMEDIATE_ACK frame is the third. A TCP Ack Rate Request takes the threshold plus one as R.
///
/// A host that negotiates a smallest delay with its peer (min_ack_delay) asks for no less. Only a
/// change is worth a frame: of a wish that varies with the window, a host repeats what has moved by a
/// quarter or so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AckFrequency {
    /// Ack-Eliciting Threshold: the most packets the receiver may leave unacknowledged. 0 asks for
    /// an ACK of every packet, 1 of every second.
    pub ack_eliciting_threshold: u32,
    /// Requested Max Ack Delay: the longest it may leave them so.
    pub max_ack_delay: TimeDelta,
    /// The last packet of each flight should be acknowledged at once.
    pub immediate_ack: bool,
}

/// ACKs per round trip that a sender needs to follow the path.
const FREQUENT: u64 = 4;
/// RFC 9000 §13.2.2: every second packet.
const DEFAULT_THRESHOLD: u32 = 1;

impl AckFrequency {
    /// At most `threshold` packets unacknowledged, for `max_ack_delay` at most; the last packet of a
    /// flight is acknowledged by the same rules.
    pub const fn new(threshold: u32, max_ack_delay: TimeDelta) -> Self {
        Self { ack_eliciting_threshold: threshold, max_ack_delay, immediate_ack: false }
    }

    /// At least four ACKs for the `packets` of a round trip of `rtt`.
    pub(crate) fn frequent(packets: u64, rtt: TimeDelta) -> Self {
        Self {
            ack_eliciting_threshold: threshold(packets / FREQUENT),
            max_ack_delay: rtt.divided_by(FREQUENT),
            immediate_ack: false,
        }
    }

    /// As few ACKs as the draft allows where nothing depends on them: one for a quarter of the window
    /// of `packets`, half a round trip late.
    pub(crate) fn sparse(packets: u64, rtt: TimeDelta) -> Self {
        Self {
            ack_eliciting_threshold: threshold(packets / 4),
            max_ack_delay: rtt.divided_by(2),
            immediate_ack: false,
        }
    }

    /// Prompt ACKs of the last packet of each flight, while a handful of packets measures the path.
    pub(crate) fn prompt(rtt: TimeDelta) -> Self {
        Self {
            ack_eliciting_threshold: DEFAULT_THRESHOLD,
            max_ack_delay: rtt.divided_by(FREQUENT),
            immediate_ack: true,
        }
    }
}

/// The threshold for one ACK per `packets_per_ack`. Where a round trip has no more than a
/// handful, every packet is acknowledged.
fn threshold(packets_per_ack: u64) -> u32 {
    u32::try_from(packets_per_ack.saturating_sub(1)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: TimeDelta = TimeDelta::from_millis(100);

    #[test]
    fn frequent_means_four_acks_per_round_trip_at_least() {
        for packets in [1, 3, 4, 7, 8, 100, 101, 10_000] {
            let wish = AckFrequency::frequent(packets, RTT);
            let per_ack = u64::from(wish.ack_eliciting_threshold) + 1;
            assert!(packets / per_ack >= packets.min(4), "{packets}: {wish:?}");
            assert!(wish.max_ack_delay.times(4) <= RTT);
        }
    }

    #[test]
    fn sparse_means_a_quarter_of_the_window_and_half_a_round_trip_at_most() {
        for packets in [1, 4, 10, 1_000, u64::MAX] {
            let wish = AckFrequency::sparse(packets, RTT);
            let per_ack = u64::from(wish.ack_eliciting_threshold) + 1;
            assert!(per_ack <= (packets / 4).max(1), "{packets}: {wish:?}");
            assert!(wish.max_ack_delay.times(2) <= RTT);
        }
    }
}
