//! Parsing of the replies to a request.

use crate::connection::Connection;
use crate::error::{DiagError, Malformed};
use crate::fields::Fields;
use crate::netlink::{DONE, ERROR, INTERRUPTED, Message, Messages};
use crate::query::{BOTH_FAMILIES, BY_FAMILY};

/// Parses the replies to one request, from any number of datagrams.
#[derive(Clone, Copy, Debug)]
pub struct Replies {
    sequence: u32,
    summary: Summary,
}

/// The summary of a dump.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Sockets reported.
    pub connections: u64,
    /// Whether the kernel reported a change of its tables during the dump (`NLM_F_DUMP_INTR`), so that a
    /// socket may be missing or duplicate. Linux does not set it for TCP sockets so far, although a dump in
    /// several parts is not a snapshot: deduplicate by cookie if necessary.
    pub interrupted: bool,
}

impl Replies {
    /// Expects replies to the request with this sequence number.
    pub const fn to(sequence: u32) -> Self {
        Self { sequence, summary: Summary { connections: 0, interrupted: false } }
    }

    /// Calls `each` for the sockets in a datagram. Returns whether this was the last datagram.
    ///
    /// # Errors
    ///
    /// If the kernel reports an error, or the datagram is malformed; `each` was then called for the sockets
    /// before that place.
    pub fn read(
        &mut self,
        datagram: &[u8],
        mut each: impl FnMut(&Connection),
    ) -> Result<bool, DiagError> {
        for message in Messages(datagram) {
            let message = message?;
            // A late reply to an earlier dump that failed.
            if message.sequence != self.sequence {
                continue;
            }
            self.summary.interrupted |= message.flags & INTERRUPTED != 0;
            match message.kind {
                BY_FAMILY | BOTH_FAMILIES => {
                    each(&Connection::parse(message.payload)?);
                    self.summary.connections += 1;
                }
                DONE => return outcome(message).map(|()| true),
                ERROR => outcome(message)?,
                _ => {}
            }
        }
        Ok(false)
    }

    /// The summary so far.
    pub const fn summary(&self) -> Summary {
        self.summary
    }
}

/// The result in an error or end message: 0 or a negative error number. The end of a dump may also be
/// empty.
fn outcome(message: Message<'_>) -> Result<(), DiagError> {
    let Some(code) = Fields(message.payload).u32(0) else {
        let length = message.payload.len();
        let complete = message.kind == DONE && length == 0;
        let malformed = Malformed { part: "an error message", length };
        return if complete { Ok(()) } else { Err(malformed.into()) };
    };
    match code.cast_signed() {
        0.. => Ok(()),
        code => Err(DiagError::from_errno("a dump of TCP sockets", code.saturating_neg())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u16, flags: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
        let mut bytes = (16 + body.len() as u32).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(flags.to_ne_bytes());
        bytes.extend(sequence.to_ne_bytes());
        bytes.extend(0_u32.to_ne_bytes());
        bytes.extend(body);
        bytes
    }

    fn socket(sequence: u32) -> Vec<u8> {
        let mut body = vec![0; 72];
        body[0] = 2;
        message(BY_FAMILY, 2, sequence, &body)
    }

    fn read(bytes: &[u8]) -> (Result<bool, DiagError>, Summary) {
        let mut replies = Replies::to(7);
        let mut seen = 0;
        let result = replies.read(bytes, |_| seen += 1);
        assert_eq!(seen, replies.summary().connections);
        (result, replies.summary())
    }

    #[test]
    fn a_dump_ends_where_the_kernel_says_so() {
        let two = [socket(7), socket(7)].concat();
        assert_eq!(read(&two), (Ok(false), Summary { connections: 2, interrupted: false }));
        for end in [message(DONE, 2, 7, &[0; 4]), message(DONE, 2, 7, &[])] {
            let all = [two.clone(), end, socket(7)].concat();
            assert_eq!(read(&all), (Ok(true), Summary { connections: 2, interrupted: false }));
        }
        assert_eq!(read(&[]).0, Ok(false));
    }

    #[test]
    fn replies_to_other_requests_are_skipped() {
        let bytes = [socket(6), message(DONE, 2, 6, &[0; 4]), socket(7)].concat();
        assert_eq!(read(&bytes), (Ok(false), Summary { connections: 1, interrupted: false }));
    }

    #[test]
    fn a_change_during_the_dump_is_reported() {
        let bytes = [socket(7), message(DONE, 2 | INTERRUPTED, 7, &[0; 4])].concat();
        assert_eq!(read(&bytes), (Ok(true), Summary { connections: 1, interrupted: true }));
    }

    /// inet_diag reports errors in the message that ends the dump, sock_diag and netlink in an error message.
    #[test]
    #[cfg(target_os = "linux")]
    fn a_kernel_without_inet_diag_is_reported() {
        let code = |errno: i32| (-errno).to_ne_bytes();
        for kind in [DONE, ERROR] {
            assert_eq!(read(&message(kind, 2, 7, &code(2))).0, Err(DiagError::Unsupported));
            let refused = read(&message(kind, 2, 7, &code(13))).0.expect_err("an error");
            assert!(refused.to_string().starts_with("a dump of TCP sockets is forbidden"));
            let busy = read(&message(kind, 2, 7, &code(16))).0.expect_err("an error");
            assert_eq!(busy, DiagError::Kernel("a dump of TCP sockets", 16));
            assert!(busy.to_string().contains("busy"), "{busy}");
        }
        assert_eq!(read(&message(ERROR, 0, 7, &[0; 20])).0, Ok(false), "an acknowledgement");
        assert!(matches!(read(&message(ERROR, 0, 7, &[0; 3])).0, Err(DiagError::Malformed(_))));
    }
}
