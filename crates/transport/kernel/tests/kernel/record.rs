//! A call that the kernel made of a controller, as reported to user space.

use crate::glue::{Connection, Staged};

/// Kinds of calls.
pub(crate) const INIT: u32 = 0;
pub(crate) const SENT: u32 = 1;
pub(crate) const ACK: u32 = 2;
pub(crate) const TIMEOUT: u32 = 3;
pub(crate) const SPURIOUS: u32 = 4;
pub(crate) const RESIZED: u32 = 5;
/// Kind, number and key.
const HEAD: usize = 16;

/// A record of `shim.bpf.c`.
pub(crate) struct Record<C> {
    pub(crate) kind: u32,
    pub(crate) number: u32,
    pub(crate) key: u64,
    pub(crate) connection: Box<Connection<C>>,
}

impl<C: Staged> Record<C> {
    #[expect(unsafe_code, reason = "the kernel's memory becomes a value")]
    pub(crate) fn read(bytes: &[u8]) -> Self {
        assert_eq!(bytes.len(), HEAD + size_of::<Connection<C>>(), "the object has another layout");
        let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four"));
        let key = u64::from_ne_bytes(bytes[8..HEAD].try_into().expect("eight"));
        // SAFETY: it is as large, and the same compiler wrote it from the same source.
        let connection = unsafe { std::ptr::read_unaligned(bytes[HEAD..].as_ptr().cast()) };
        Self { kind: word(0), number: word(4), key, connection: Box::new(connection) }
    }
}
