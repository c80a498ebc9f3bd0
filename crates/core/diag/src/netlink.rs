//! Messages in a netlink datagram (netlink(7), `include/uapi/linux/netlink.h`).

use crate::error::Malformed;
use crate::fields::Fields;

/// `sizeof(struct nlmsghdr)`.
pub(crate) const HEADER: usize = 16;
/// `NLMSG_ERROR`: an error number, or 0 for an acknowledgement.
pub(crate) const ERROR: u16 = 2;
/// `NLMSG_DONE`: the end of a dump, with an error number if it failed.
pub(crate) const DONE: u16 = 3;
/// `NLM_F_DUMP_INTR`: the data changed during the dump.
pub(crate) const INTERRUPTED: u16 = 0x10;

/// One message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message<'a> {
    pub(crate) kind: u16,
    pub(crate) flags: u16,
    pub(crate) sequence: u32,
    pub(crate) payload: &'a [u8],
}

/// The messages of a datagram, in order. Ends after the first malformed one.
#[derive(Clone, Debug)]
pub(crate) struct Messages<'a>(pub(crate) &'a [u8]);

impl<'a> Iterator for Messages<'a> {
    type Item = Result<Message<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let bytes = std::mem::take(&mut self.0);
        let Some((message, length)) = split(bytes) else {
            let length = Fields(bytes).u32(0).map_or(bytes.len(), |length| length as usize);
            return Some(Err(Malformed { part: "a netlink message", length }));
        };
        self.0 = bytes.get(aligned(length)..).unwrap_or_default();
        Some(Ok(message))
    }
}

/// The first message and its length, header included.
fn split(bytes: &[u8]) -> Option<(Message<'_>, usize)> {
    let header = Fields(bytes);
    let length = header.u32(0)? as usize;
    let message = Message {
        kind: header.u16(4)?,
        flags: header.u16(6)?,
        sequence: header.u32(8)?,
        payload: bytes.get(HEADER..length)?,
    };
    Some((message, length))
}

/// Messages and attributes start at multiples of 4 bytes (`NLMSG_ALIGNTO`, `NLA_ALIGNTO`).
pub(crate) fn aligned(length: usize) -> usize {
    length.saturating_add(3) & !3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(length: u32, kind: u16, body: &[u8]) -> Vec<u8> {
        let mut bytes = length.to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(INTERRUPTED.to_ne_bytes());
        bytes.extend(7_u32.to_ne_bytes());
        bytes.extend(0_u32.to_ne_bytes());
        bytes.extend(body);
        bytes
    }

    #[test]
    fn messages_start_at_multiples_of_four() {
        let mut bytes = message(19, 20, &[1, 2, 3, 0]);
        bytes.extend(message(16, DONE, &[]));
        let all: Vec<_> = Messages(&bytes).collect::<Result<_, _>>().expect("two messages");
        assert_eq!(all.len(), 2);
        assert_eq!((all[0].kind, all[0].payload), (20, &[1, 2, 3][..]));
        assert_eq!((all[1].kind, all[1].payload), (DONE, &[][..]));
        assert_eq!((all[1].flags, all[1].sequence), (INTERRUPTED, 7));
    }

    /// The last message of a datagram may lack its padding.
    #[test]
    fn padding_is_optional_at_the_end() {
        let bytes = message(17, 20, &[9]);
        assert_eq!(Messages(&bytes).count(), 1);
        assert!(Messages(&bytes).all(|message| message.is_ok()));
    }

    #[test]
    fn an_impossible_length_ends_the_datagram() {
        for length in [0, 15, 21, u32::MAX] {
            let mut bytes = message(length, 20, &[1, 2, 3, 4]);
            bytes.truncate(20);
            let all: Vec<_> = Messages(&bytes).collect();
            assert_eq!(all.len(), 1, "{length}");
            let expected = Malformed { part: "a netlink message", length: length as usize };
            assert_eq!(all[0].map(|message| message.kind), Err(expected));
        }
        let cut = &message(16, 20, &[])[..3];
        let error = Messages(cut).next().expect("an error").expect_err("an error");
        assert_eq!(error.length, 3);
    }
}
