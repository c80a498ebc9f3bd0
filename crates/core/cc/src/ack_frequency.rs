//! How often the receiver should acknowledge: draft-ietf-ccwg-bbr-06 §4.1.3.3, in the terms
//! of draft-ietf-quic-ack-frequency.

use uncork_units::TimeDelta;

/// The ACK frequency to request from the receiver, if the transport supports it. In QUIC an
/// ACK_FREQUENCY frame carries the first two fields and an IMMEDIATE_ACK frame the third. A TCP Ack
/// Rate Request sends the threshold plus one as R.
///
/// A host that negotiated a minimum delay with its peer (min_ack_delay) must not request less. To
/// save frames, request again only after a value has moved by about a quarter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AckFrequency {
    /// Ack-Eliciting Threshold: maximum number of packets that the receiver may leave unacknowledged.
    /// 0 requests an ACK for every packet, 1 for every second packet.
    pub ack_eliciting_threshold: u32,
    /// Requested Max Ack Delay: maximum time for which the receiver may delay an ACK.
    pub max_ack_delay: TimeDelta,
    /// The receiver should acknowledge the last packet of each flight at once.
    pub immediate_ack: bool,
}

/// ACKs per round trip that the sender needs while it probes the path.
const FREQUENT: u64 = 4;
/// RFC 9000 §13.2.2: every second packet.
const DEFAULT_THRESHOLD: u32 = 1;

impl AckFrequency {
    /// At most `threshold` packets stay unacknowledged, for at most `max_ack_delay`. The last
    /// packet of a flight gets no special treatment.
    pub const fn new(threshold: u32, max_ack_delay: TimeDelta) -> Self {
        Self { ack_eliciting_threshold: threshold, max_ack_delay, immediate_ack: false }
    }

    /// At least four ACKs per round trip of `rtt` with `packets` packets.
    pub(crate) fn frequent(packets: u64, rtt: TimeDelta) -> Self {
        Self {
            ack_eliciting_threshold: threshold(packets / FREQUENT),
            max_ack_delay: rtt.divided_by(FREQUENT),
            immediate_ack: false,
        }
    }

    /// The fewest ACKs the draft allows: one per quarter of a window of `packets`, delayed by up to
    /// half a round trip.
    pub(crate) fn sparse(packets: u64, rtt: TimeDelta) -> Self {
        Self {
            ack_eliciting_threshold: threshold(packets / 4),
            max_ack_delay: rtt.divided_by(2),
            immediate_ack: false,
        }
    }

    /// Prompt ACK of the last packet of each flight, for states that measure the path with a few
    /// packets.
    pub(crate) fn prompt(rtt: TimeDelta) -> Self {
        Self {
            ack_eliciting_threshold: DEFAULT_THRESHOLD,
            max_ack_delay: rtt.divided_by(FREQUENT),
            immediate_ack: true,
        }
    }
}

/// The threshold that yields one ACK per `packets_per_ack`. With only a few packets per round trip,
/// every packet is acknowledged.
fn threshold(packets_per_ack: u64) -> u32 {
    u32::try_from(packets_per_ack.saturating_sub(1)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: TimeDelta = TimeDelta::from_millis(100);

    #[test]
    fn frequent_requests_at_least_four_acks_per_round_trip() {
        for packets in [1, 3, 4, 7, 8, 100, 101, 10_000] {
            let wish = AckFrequency::frequent(packets, RTT);
            let per_ack = u64::from(wish.ack_eliciting_threshold) + 1;
            assert!(packets / per_ack >= packets.min(4), "{packets}: {wish:?}");
            assert!(wish.max_ack_delay.times(4) <= RTT);
        }
    }

    #[test]
    fn sparse_requests_at_most_a_quarter_window_and_half_a_round_trip() {
        for packets in [1, 4, 10, 1_000, u64::MAX] {
            let wish = AckFrequency::sparse(packets, RTT);
            let per_ack = u64::from(wish.ack_eliciting_threshold) + 1;
            assert!(per_ack <= (packets / 4).max(1), "{packets}: {wish:?}");
            assert!(wish.max_ack_delay.times(2) <= RTT);
        }
    }
}
