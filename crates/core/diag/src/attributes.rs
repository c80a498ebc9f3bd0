//! Attributes of a netlink message (`struct nlattr`, `include/uapi/linux/netlink.h`).

use crate::error::Malformed;
use crate::fields::Fields;
use crate::netlink::aligned;

const HEADER: usize = 4;
/// `NLA_TYPE_MASK`: the two bits above it describe the payload's encoding.
const KIND: u16 = 0x3fff;

/// The attributes of a message as (kind, payload), in order. Ends after the first malformed one; a rest
/// shorter than a header is padding.
#[derive(Clone, Debug)]
pub(crate) struct Attributes<'a>(pub(crate) &'a [u8]);

impl<'a> Iterator for Attributes<'a> {
    type Item = Result<(u16, &'a [u8]), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = std::mem::take(&mut self.0);
        let (length, kind) = (usize::from(Fields(bytes).u16(0)?), Fields(bytes).u16(2)?);
        let Some(payload) = bytes.get(HEADER..length) else {
            return Some(Err(Malformed { part: "an attribute", length }));
        };
        self.0 = bytes.get(aligned(length)..).unwrap_or_default();
        Some(Ok((kind & KIND, payload)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(length: u16, kind: u16, body: &[u8]) -> Vec<u8> {
        [&length.to_ne_bytes()[..], &kind.to_ne_bytes(), body].concat()
    }

    #[test]
    fn attributes_are_padded_and_their_flags_ignored() {
        let mut bytes = attribute(5, 4, &[1, 0, 0, 0]);
        bytes.extend(attribute(8, 0x8000 | 7, &[1, 2, 3, 4]));
        bytes.extend([0, 0]);
        let all: Vec<_> = Attributes(&bytes).collect::<Result<_, _>>().expect("two attributes");
        assert_eq!(all, [(4, &[1][..]), (7, &[1, 2, 3, 4][..])]);
    }

    #[test]
    fn an_impossible_length_ends_the_iteration() {
        for length in [0, 3, 9, u16::MAX] {
            let mut bytes = attribute(length, 4, &[0; 4]);
            bytes.truncate(8);
            let all: Vec<_> = Attributes(&bytes).collect();
            let length = usize::from(length);
            assert_eq!(all, [Err(Malformed { part: "an attribute", length })]);
        }
    }
}
