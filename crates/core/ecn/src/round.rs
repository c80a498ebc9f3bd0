//! A round of a flow: about a round trip, and what it shows.

use uncork_units::{Time, TimeDelta};

use crate::limits::{CLASSIC_QUEUE, L4S_QUEUE, MAX_L4S_PACKETS, MAX_PACKET_TIME};

/// About a round trip of a flow. Hosts that see no single ACKs, but totals from time to time, can fill it in themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// When it began.
    pub start: Time,
    /// When it ended.
    pub end: Time,
    /// Packets acknowledged.
    pub packets: u32,
    /// Of these, reported as marked.
    pub marked: u32,
    /// Smallest RTT of the connection so far.
    pub min_rtt: TimeDelta,
    /// Smallest RTT of the round.
    pub rtt: TimeDelta,
    /// Smallest RTT of the round that an ACK measured which reported a mark.
    pub marked_rtt: TimeDelta,
    /// The time for one packet at the highest rate of the flow so far.
    pub packet_time: TimeDelta,
}

/// What a round shows about the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoundKind {
    /// No marks.
    Unmarked,
    /// Marks at a queue that a classic one would not mark.
    L4s,
    /// Few marks at a standing queue. A queue for L4S would mark every packet.
    Classic,
    /// Marks that both would make.
    Unclear,
}

impl Round {
    /// The queue that stood throughout the round.
    pub fn queue(&self) -> TimeDelta {
        self.rtt - self.min_rtt
    }

    /// The smallest queue that was marked.
    pub fn marked_queue(&self) -> TimeDelta {
        self.marked_rtt - self.min_rtt
    }

    /// Whether a queue stood throughout the round that is none of L4S.
    pub fn is_loaded(&self) -> bool {
        self.queue() >= CLASSIC_QUEUE.max(self.packet_time.times(MAX_L4S_PACKETS))
    }

    /// What it shows.
    pub fn kind(&self) -> RoundKind {
        if self.marked == 0 {
            RoundKind::Unmarked
        } else if self.packet_time <= MAX_PACKET_TIME && self.marked_queue() <= L4S_QUEUE {
            RoundKind::L4s
        } else if self.is_loaded() && self.marked < self.packets.div_ceil(2) {
            RoundKind::Classic
        } else {
            RoundKind::Unclear
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> TimeDelta = TimeDelta::from_millis;

    /// A round of 40 packets, 2 of them marked, over 20 ms and a queue.
    fn round(queue_ms: u64) -> Round {
        Round {
            start: Time::ZERO,
            end: Time::ZERO + MS(25),
            packets: 40,
            marked: 2,
            min_rtt: MS(20),
            rtt: MS(20 + queue_ms),
            marked_rtt: MS(20 + queue_ms),
            packet_time: TimeDelta::from_micros(500),
        }
    }

    #[test]
    fn round_by_its_queue_shows_the_kind() {
        let kinds = [0, 3, 4, 15].map(|queue| round(queue).kind());
        let (l4s, classic) = (RoundKind::L4s, RoundKind::Classic);
        assert_eq!(kinds, [l4s, l4s, classic, classic]);
        let between = TimeDelta::from_micros(3_500);
        let between = Round { rtt: MS(20) + between, marked_rtt: MS(20) + between, ..round(0) };
        assert_eq!(between.kind(), RoundKind::Unclear);
    }

    #[test]
    fn round_without_marks_shows_nothing() {
        assert_eq!(Round { marked: 0, ..round(15) }.kind(), RoundKind::Unmarked);
    }

    /// A queue for L4S that overflows in slow start marks every packet.
    #[test]
    fn round_deep_queue_with_most_packets_marked_is_unclear() {
        assert_eq!(Round { marked: 20, ..round(15) }.kind(), RoundKind::Unclear);
        assert_eq!(Round { marked: 19, ..round(15) }.kind(), RoundKind::Classic);
    }

    /// At 1 Mbit/s a packet takes 12 ms: one is more than any limit in milliseconds.
    #[test]
    fn round_on_a_slow_link_shows_no_l4s_and_counts_packets() {
        let slow = |queue| Round { packet_time: MS(12), ..round(queue) };
        let kinds = [0, 12, 23, 24].map(|queue| slow(queue).kind());
        let unclear = RoundKind::Unclear;
        assert_eq!(kinds, [unclear, unclear, unclear, RoundKind::Classic]);
    }
}
