//! A simplified TCP: segments of equal size, numbered from 0, over a lossy path.
//!
//! Modelled: SACK (RFC 2018, RFC 2883), RACK-TLP (RFC 8985), RTO (RFC 6298), delayed ACKs (RFC 9293
//! §3.8.6.3, Linux's 40 ms), pacing, the receive window, the three-way handshake, and on request
//! segmentation offload, AccECN (RFC 9768). Not modelled: Nagle, window autotuning, middleboxes that change the TCP
//! header, but for one that removes the AccECN option.

use uncork_path::Ecn;
use uncork_units::Time;

use crate::offload::Offload;

mod accecn;
mod ack;
mod rack;
mod ranges;
mod receiver;
mod rtt;
mod scoreboard;
mod sender;
mod stream;

pub(crate) use ack::Ack;
pub(crate) use receiver::{Receiver, Reply};
pub(crate) use sender::{AckScratch, Host, Sender};
pub(crate) use stream::Stream;

/// Payload of a full segment: 1500 bytes less IPv4, TCP and the timestamp option.
pub const MSS_BYTES: u32 = 1448;
/// Headers of every packet.
pub const HEADER_BYTES: u32 = 52;
/// Size of a full packet on the wire.
pub const PACKET_BYTES: u32 = MSS_BYTES + HEADER_BYTES;

/// One transmission of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Number of the segment.
    pub(crate) seq: u64,
    /// Number of the transmission.
    pub(crate) tx: u64,
    /// Departure time (the timestamp option, without its granularity).
    pub(crate) sent: Time,
    /// Payload bytes.
    pub(crate) bytes: u32,
    /// How many full segments follow in the same packet: segmentation offload.
    pub(crate) more: u8,
    /// Whether this is the last of several segments that were one packet: the PSH flag, as Linux sets it.
    pub(crate) push: bool,
    /// Whether this is a retransmission.
    pub(crate) repeats: bool,
    /// The ECN field with which it arrives.
    pub(crate) ecn: Ecn,
}

impl Segment {
    /// The first transmission of a segment that is a packet by itself.
    pub(crate) const fn alone(seq: u64, tx: u64, sent: Time, bytes: u32) -> Self {
        Self { seq, tx, sent, bytes, more: 0, push: false, repeats: false, ecn: Ecn::NotEct }
    }

    /// The packets on the path: one for each segment, or one with all of them.
    pub(crate) fn packets(self, offload: Offload) -> impl Iterator<Item = Self> {
        let (more, packets) = match offload {
            Offload::Card => (self.more, 1),
            Offload::None | Offload::Host => (0, 1 + self.more),
        };
        (0..packets).map(move |index| {
            let (seq, tx) = (self.seq + u64::from(index), self.tx + u64::from(index));
            Self { seq, tx, more, push: index > 0 && index + 1 == packets, ..self }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_cuts_a_packet_and_marks_its_end() {
        let alone = Segment { repeats: true, ..Segment::alone(7, 9, Time::ZERO, MSS_BYTES) };
        let first = Segment { more: 2, ..alone };
        let cut = |offload| first.packets(offload).collect::<Vec<_>>();
        assert_eq!(cut(Offload::Card), [first]);
        let segment = |seq, tx, push| Segment { seq, tx, more: 0, push, ..first };
        let three = [segment(7, 9, false), segment(8, 10, false), segment(9, 11, true)];
        assert_eq!(cut(Offload::Host), three);
        assert_eq!(alone.packets(Offload::Host).collect::<Vec<_>>(), [alone], "no end to mark");
    }
}
