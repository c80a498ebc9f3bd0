//! A client's `PRIORITY_UPDATE` frames (RFC 9218 §7.2), and the largest head that it accepts.
//!
//! `h3` skips the former and keeps the latter for itself. So this module parses a client's control stream on its
//! way to `h3`, which reports all other errors in it.

use noq_proto::{Dir, Side, StreamId, VarInt};

use crate::priority::Priority;

/// The type of a control stream (RFC 9114 §6.2.1).
const CONTROL: u64 = 0;
/// `SETTINGS` (RFC 9114 §7.2.4).
const SETTINGS: u64 = 4;
/// The setting of the largest size of a head.
const MAX_FIELD_SECTION_SIZE: u64 = 6;
/// `PRIORITY_UPDATE` for a request stream.
const OF_REQUEST: u64 = 0xf_0700;
/// Longer frames are skipped. No valid frame needs more.
const MAX_FRAME: u64 = 1024;
/// `H3_FRAME_ERROR` (RFC 9114 §8.1).
const FRAME_ERROR: VarInt = VarInt::from_u32(0x106);
/// `H3_ID_ERROR`.
const ID_ERROR: VarInt = VarInt::from_u32(0x108);

/// Parses the updates in a client's unidirectional stream.
#[derive(Debug, Default)]
pub(crate) struct Updates {
    place: UpdatePlace,
    /// The incomplete next item.
    partial: Vec<u8>,
    /// Updates parsed and not yet taken.
    parsed: Vec<(StreamId, Priority)>,
    /// The largest head that the client accepts, if it is known and not taken yet.
    largest_head: Option<u64>,
    /// The error code to close the connection with.
    broken: Option<VarInt>,
}

/// The next part of the stream.
#[derive(Clone, Copy, Debug, Default)]
enum UpdatePlace {
    /// The stream's type.
    #[default]
    Type,
    /// A frame.
    Frame,
    /// The rest of a skipped frame, in bytes.
    Unwanted(u64),
    /// Not a control stream, or a broken one: ignored to its end.
    Other,
}

impl Updates {
    /// Returns the updates since the last call. If one was invalid, also returns the error code to
    /// close the connection with.
    pub(crate) fn take(&mut self) -> (Vec<(StreamId, Priority)>, Option<VarInt>) {
        (std::mem::take(&mut self.parsed), self.broken)
    }

    /// The largest head that the client accepts, if that was received since the last call.
    pub(crate) fn take_largest_head(&mut self) -> Option<u64> {
        self.largest_head.take()
    }

    /// Parses the next bytes of the stream.
    pub(crate) fn read(&mut self, bytes: &[u8]) {
        if let Err(code) = self.try_read(bytes) {
            self.broken = Some(code);
            self.place = UpdatePlace::Other;
        }
    }

    fn try_read(&mut self, new: &[u8]) -> Result<(), VarInt> {
        let mut bytes = std::mem::take(&mut self.partial);
        bytes.extend_from_slice(new);
        let mut rest = &bytes[..];
        while let Some(used) = self.item(rest)? {
            rest = &rest[used..];
        }
        self.partial.extend_from_slice(rest);
        Ok(())
    }

    /// Parses the first item in `bytes`. Returns its length, or `None` if it is incomplete.
    fn item(&mut self, bytes: &[u8]) -> Result<Option<usize>, VarInt> {
        if bytes.is_empty() {
            return Ok(None);
        }
        match self.place {
            UpdatePlace::Other => Ok(Some(bytes.len())),
            UpdatePlace::Unwanted(left) => {
                let skipped = left.min(bytes.len() as u64);
                let is_all = skipped == left;
                self.place =
                    if is_all { UpdatePlace::Frame } else { UpdatePlace::Unwanted(left - skipped) };
                Ok(Some(skipped as usize))
            }
            UpdatePlace::Type => {
                let Some((kind, rest)) = varint(bytes) else { return Ok(None) };
                self.place = if kind == CONTROL { UpdatePlace::Frame } else { UpdatePlace::Other };
                Ok(Some(bytes.len() - rest.len()))
            }
            UpdatePlace::Frame => self.frame(bytes),
        }
    }

    fn frame(&mut self, bytes: &[u8]) -> Result<Option<usize>, VarInt> {
        let Some((kind, rest)) = varint(bytes) else { return Ok(None) };
        let Some((length, payload)) = varint(rest) else { return Ok(None) };
        let head = bytes.len() - payload.len();
        if !matches!(kind, OF_REQUEST | SETTINGS) || length > MAX_FRAME {
            self.place = UpdatePlace::Unwanted(length);
            return Ok(Some(head));
        }
        let Some(payload) = payload.get(..length as usize) else { return Ok(None) };
        match kind {
            SETTINGS => self.largest_head = largest_head(payload),
            _ => self.parsed.push(update(payload)?),
        }
        Ok(Some(head + payload.len()))
    }
}

/// Parses a frame's payload: the request stream and its new priority.
fn update(payload: &[u8]) -> Result<(StreamId, Priority), VarInt> {
    let (id, value) = varint(payload).ok_or(FRAME_ERROR)?;
    let id = StreamId::from(VarInt::try_from(id).map_err(|_| FRAME_ERROR)?);
    if (id.initiator(), id.dir()) != (Side::Client, Dir::Bi) {
        return Err(ID_ERROR);
    }
    Ok((id, Priority::parse(value)))
}

/// The largest head that `SETTINGS` allow.
fn largest_head(mut settings: &[u8]) -> Option<u64> {
    while let Some((name, rest)) = varint(settings) {
        let (value, rest) = varint(rest)?;
        if name == MAX_FIELD_SECTION_SIZE {
            return Some(value);
        }
        settings = rest;
    }
    None
}

/// A variable-length integer (RFC 9000 §16), and the bytes after it.
fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let first = *bytes.first()?;
    let (number, rest) = bytes.split_at_checked(1 << (first >> 6))?;
    let mask = u64::MAX >> (64 - 8 * number.len() + 2);
    let value = number.iter().fold(0, |value, byte| value << 8 | u64::from(*byte));
    Some((value & mask, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame with a payload of less than 64 bytes.
    fn frame(id: &[u8], value: &[u8]) -> Vec<u8> {
        let length = (id.len() + value.len()) as u8;
        [&[0x80, 0x0f, 0x07, 0x00, length], id, value].concat()
    }

    fn read(pieces: &[&[u8]]) -> Result<Vec<(u64, Priority)>, VarInt> {
        let mut updates = Updates::default();
        for piece in pieces {
            updates.read(piece);
        }
        let (found, broken) = updates.take();
        let found = found.into_iter().map(|(id, priority)| (id.into(), priority));
        broken.map_or(Ok(found.collect()), Err)
    }

    const URGENT: Priority = Priority { urgency: 1, incremental: true };

    #[test]
    fn varints_match_rfc_9000() {
        // Appendix A.1.
        let examples: [(&[u8], u64); 4] = [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
        ];
        for (bytes, value) in examples {
            assert_eq!(varint(bytes), Some((value, &[][..])));
            assert_eq!(varint(&bytes[..bytes.len() - 1]), None);
        }
    }

    #[test]
    fn updates_are_found_between_other_frames_however_they_arrive() {
        let settings: &[u8] = &[0, 4, 2, 0x21, 1];
        let large = [&[0x21, 0x48, 0][..], &[0xf0; 2048]].concat();
        let long = [&[0x80, 0x0f, 0x07, 0x00, 0x44, 1][..], &[4; 1025]].concat();
        let stream = [
            settings,
            &frame(&[4], b"u=1, i"),
            &large,
            &long,
            &frame(&[0x40, 8], b""),
            &frame(&[4], b"u=2,"),
            &[0x21, 0],
        ]
        .concat();
        let expected = vec![(4, URGENT), (8, Priority::default()), (4, Priority::default())];
        assert_eq!(read(&[&stream]), Ok(expected.clone()));
        for size in [1, 2, 3, 7, 100] {
            let pieces: Vec<&[u8]> = stream.chunks(size).collect();
            assert_eq!(read(&pieces), Ok(expected.clone()), "{size} bytes at a time");
        }
    }

    #[test]
    fn the_largest_head_is_one_of_the_settings() {
        for (settings, largest) in [
            (&[0, 4, 2, 0x21, 1][..], None),
            (&[0, 4, 5, 0x21, 1, 6, 0x44, 0], Some(1024)),
            (&[0, 4, 2, 6, 0], Some(0)),
            (&[0, 4, 1, 6], None),
        ] {
            for size in [1, 100] {
                let mut updates = Updates::default();
                settings.chunks(size).for_each(|piece| updates.read(piece));
                assert_eq!(updates.take_largest_head(), largest, "{settings:?}");
            }
        }
    }

    #[test]
    fn streams_other_than_the_control_stream_are_ignored() {
        let bytes = [&[2][..], &frame(&[1], b"u=1")].concat();
        assert_eq!(read(&[&bytes]), Ok(vec![]));
    }

    #[test]
    fn an_update_for_a_non_request_stream_is_an_error() {
        for (what, frame, error) in [
            ("a stream of the server's", frame(&[1], b"u=1"), ID_ERROR),
            ("a stream of one direction", frame(&[2], b"u=1"), ID_ERROR),
            ("no stream", frame(&[], b""), FRAME_ERROR),
            ("half of a stream's number", frame(&[0x40], b""), FRAME_ERROR),
        ] {
            assert_eq!(read(&[&[0], &frame]), Err(error), "{what}");
        }
    }
}
