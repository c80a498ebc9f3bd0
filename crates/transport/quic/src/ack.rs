//! The ACK frames of a packet: RFC 9000 §19.3.
//!
//! The stack reports the packets that an ACK frame acknowledges for the first time. It does not report the
//! ACK delay, the ECN counts, or lost packets that the frame acknowledges. So this module reads the
//! frames again, before the stack processes them.

/// Most ranges kept of a frame, newest first. A frame may have hundreds of old ones.
const MAX_RANGES: usize = 64;

/// The contents of an ACK frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AckFrame {
    /// Inclusive ranges of packet numbers, in descending order.
    pub(crate) ranges: Vec<(u64, u64)>,
    /// ACK delay, in the peer's unit.
    pub(crate) delay: u64,
    /// CE marks so far.
    pub(crate) ce_total: Option<u64>,
}

impl AckFrame {
    /// The largest packet number it acknowledges.
    pub(crate) fn largest(&self) -> Option<u64> {
        self.ranges.first().map(|(_, to)| *to)
    }

    /// Whether the kept ranges contain this packet.
    pub(crate) fn contains(&self, packet: u64) -> bool {
        let below = self.ranges.partition_point(|(from, _)| *from > packet);
        self.ranges.get(below).is_some_and(|(_, to)| packet <= *to)
    }

    /// Reads the ACK frame with the largest number in the frames of a packet. Returns false if
    /// there is none before the first frame that is malformed or of unknown type: the stack closes
    /// the connection there.
    pub(crate) fn read(&mut self, mut payload: &[u8]) -> bool {
        self.ranges.clear();
        let mut found = false;
        while !payload.is_empty() {
            let frame = varint(&mut payload);
            let Some(rest) = frame.and_then(|kind| self.frame(kind, payload, &mut found)) else {
                break;
            };
            payload = rest;
        }
        found
    }

    /// Parses the body of a frame of this type. Returns the bytes after it.
    fn frame<'a>(&mut self, kind: u64, mut rest: &'a [u8], found: &mut bool) -> Option<&'a [u8]> {
        match kind {
            0x02 | 0x03 => {
                let mut ack = Self::default();
                ack.body(&mut rest, kind == 0x03)?;
                if !*found || ack.largest() > self.largest() {
                    *self = ack;
                }
                *found = true;
            }
            // PADDING mostly fills the rest of the packet.
            0x00 => rest = &rest[rest.iter().take_while(|byte| **byte == 0).count()..],
            _ => skip(kind, &mut rest)?,
        }
        Some(rest)
    }

    fn body(&mut self, rest: &mut &[u8], with_ecn: bool) -> Option<()> {
        let mut to = varint(rest)?;
        self.delay = varint(rest)?;
        let more = varint(rest)?;
        let mut from = to.checked_sub(varint(rest)?)?;
        self.ranges.push((from, to));
        for _ in 0..more {
            to = from.checked_sub(varint(rest)?.checked_add(2)?)?;
            from = to.checked_sub(varint(rest)?)?;
            if self.ranges.len() < MAX_RANGES {
                self.ranges.push((from, to));
            }
        }
        if with_ecn {
            let _ect = (varint(rest)?, varint(rest)?);
            self.ce_total = Some(varint(rest)?);
        }
        Some(())
    }
}

/// Skips the body of a non-ACK frame (RFC 9000 §19, RFC 9221 §4, draft-ietf-quic-ack-frequency
/// §4 and §5).
fn skip(kind: u64, rest: &mut &[u8]) -> Option<()> {
    let varints = match kind {
        // PING, HANDSHAKE_DONE, IMMEDIATE_ACK.
        0x01 | 0x1e | 0x1f => 0,
        // MAX_DATA, MAX_STREAMS, DATA_BLOCKED, STREAMS_BLOCKED, RETIRE_CONNECTION_ID.
        0x10 | 0x12..=0x14 | 0x16 | 0x17 | 0x19 => 1,
        // STOP_SENDING, MAX_STREAM_DATA, STREAM_DATA_BLOCKED.
        0x05 | 0x11 | 0x15 => 2,
        // RESET_STREAM.
        0x04 => 3,
        // ACK_FREQUENCY.
        0xaf => 4,
        _ => return skip_bytes(kind, rest),
    };
    for _ in 0..varints {
        varint(rest)?;
    }
    Some(())
}

/// Skips the body of a frame that holds bytes in addition to integers.
fn skip_bytes(kind: u64, rest: &mut &[u8]) -> Option<()> {
    let length = match kind {
        // CRYPTO, CONNECTION_CLOSE of the application.
        0x06 | 0x1d => {
            varint(rest)?;
            varint(rest)?
        }
        // NEW_TOKEN, DATAGRAM with a length.
        0x07 | 0x31 => varint(rest)?,
        // STREAM: the type's bits show whether offset and length are present.
        0x08..=0x0f => {
            varint(rest)?;
            if kind & 0x04 != 0 {
                varint(rest)?;
            }
            if kind & 0x02 != 0 { varint(rest)? } else { rest.len() as u64 }
        }
        // NEW_CONNECTION_ID: two numbers, the ID with its length, a reset token of 16 bytes.
        0x18 => {
            varint(rest)?;
            varint(rest)?;
            u64::from(byte(rest)?) + 16
        }
        // PATH_CHALLENGE, PATH_RESPONSE.
        0x1a | 0x1b => 8,
        // CONNECTION_CLOSE of the transport, with the type of the offending frame.
        0x1c => {
            varint(rest)?;
            varint(rest)?;
            varint(rest)?
        }
        // DATAGRAM that extends to the end of the packet.
        0x30 => rest.len() as u64,
        _ => return None,
    };
    *rest = rest.get(usize::try_from(length).ok()?..)?;
    Some(())
}

fn byte(rest: &mut &[u8]) -> Option<u8> {
    let (first, after) = rest.split_first()?;
    *rest = after;
    Some(*first)
}

/// A variable-length integer (RFC 9000 §16).
fn varint(rest: &mut &[u8]) -> Option<u64> {
    let first = byte(rest)?;
    let more = (1_usize << (first >> 6)) - 1;
    let (bytes, after) = rest.split_at_checked(more)?;
    *rest = after;
    Some(bytes.iter().fold(u64::from(first & 0x3f), |value, byte| value << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(payload: &[u8]) -> Option<AckFrame> {
        let mut ack = AckFrame::default();
        ack.read(payload).then_some(ack)
    }

    /// RFC 9000 §A.1.
    #[test]
    fn varints_match_the_examples_of_rfc_9000() {
        for (bytes, value) in [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c][..], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
        ] {
            assert_eq!(varint(&mut &*bytes), Some(value));
            assert_eq!(varint(&mut &bytes[..bytes.len() - 1]), None, "cut short");
        }
    }

    /// RFC 9000 §19.3.1: a gap is the number of missing packets minus one, a range is the number of
    /// received packets minus one.
    #[test]
    fn ranges_are_counted_from_the_largest_down() {
        let ack = read(&[0x02, 20, 5, 2, 0, 1, 3, 0, 4]).unwrap();
        assert_eq!(ack.ranges, [(20, 20), (14, 17), (8, 12)]);
        assert_eq!((ack.largest(), ack.delay, ack.ce_total), (Some(20), 5, None));
        let held: Vec<u64> = (0..30).filter(|packet| ack.contains(*packet)).collect();
        assert_eq!(held, [8, 9, 10, 11, 12, 14, 15, 16, 17, 20]);
    }

    #[test]
    fn the_third_count_is_ce() {
        let ack = read(&[0x03, 9, 0, 0, 9, 7, 8, 0x40, 0xff]).unwrap();
        assert_eq!((ack.ranges, ack.ce_total), (vec![(0, 9)], Some(255)));
    }

    #[test]
    fn an_ack_is_found_after_any_other_frame() {
        let ack = [0x02, 3, 1, 0, 3];
        let others: [&[u8]; 24] = [
            &[0x00, 0x00, 0x00],
            &[0x01],
            &[0x04, 1, 2, 3],
            &[0x05, 1, 2],
            &[0x06, 0, 2, 9, 9],
            &[0x07, 3, 9, 9, 9],
            &[0x0a, 4, 1, 9],
            &[0x0e, 4, 7, 1, 9],
            &[0x0f, 4, 7, 0],
            &[0x10, 1],
            &[0x11, 1, 2],
            &[0x12, 1],
            &[0x13, 1],
            &[0x14, 1],
            &[0x15, 1, 2],
            &[0x16, 1],
            &[0x17, 1],
            &[0x18, 1, 0, 2, 8, 8, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16],
            &[0x19, 1],
            &[0x1a, 1, 2, 3, 4, 5, 6, 7, 8],
            &[0x1c, 1, 6, 1, 9],
            &[0x1d, 1, 1, 9],
            &[0x40, 0xaf, 1, 2, 3, 4],
            &[0x31, 2, 9, 9],
        ];
        for other in others {
            let found = read(&[other, &ack].concat());
            assert_eq!(found.map(|ack| ack.ranges), Some(vec![(0, 3)]), "{other:x?}");
            assert_eq!(read(&[&ack, other].concat()).map(|ack| ack.delay), Some(1), "{other:x?}");
        }
        // These frames extend to the end of the packet.
        for last in [&[0x08, 4, 9, 9][..], &[0x30, 9, 9]] {
            assert_eq!(read(&[last, &ack].concat()), None);
        }
    }

    #[test]
    fn the_ack_frame_with_the_largest_number_is_kept() {
        let (new, old) = ([0x02, 9, 1, 0, 0], [0x02, 5, 2, 0, 0]);
        for frames in [[new, old].concat(), [old, new].concat()] {
            assert_eq!(read(&frames).map(|ack| (ack.delay, ack.ranges)), Some((1, vec![(9, 9)])));
        }
    }

    #[test]
    fn a_malformed_or_unknown_frame_ends_parsing() {
        assert_eq!(read(&[]), None);
        assert_eq!(read(&[0x02]), None);
        assert_eq!(read(&[0x02, 3, 0, 0, 4]), None, "below zero");
        assert_eq!(read(&[0x02, 3, 0, 1, 0, 2, 0]), None, "below zero after a gap");
        assert_eq!(read(&[0x40, 0x42, 0x02, 3, 0, 0, 0]), None, "an unknown frame");
        assert_eq!(read(&[0x06, 0, 9, 1]), None, "shorter than it says");
    }

    proptest! {
        #[test]
        fn parsing_arbitrary_bytes_terminates(payload in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Some(ack) = read(&payload) {
                prop_assert!(ack.ranges.iter().all(|(from, to)| from <= to));
                prop_assert!(ack.ranges.windows(2).all(|pair| pair[0].0 > pair[1].1));
                prop_assert!(ack.ranges.len() <= MAX_RANGES);
            }
        }
    }
}
