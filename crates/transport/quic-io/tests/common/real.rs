//! The payload of tests in real time: bytes that can be checked at any offset.

use std::sync::OnceLock;

use bytes::Bytes;

/// The block that the payload repeats. Its length is prime, so shifted data never matches.
pub(crate) fn block() -> &'static Bytes {
    static BLOCK: OnceLock<Bytes> = OnceLock::new();
    BLOCK.get_or_init(|| {
        let mut random = uncork_units::Rng::new(7, 0);
        (0..65_521).map(|_| random.next_u64() as u8).collect()
    })
}

/// The payload from `offset`, up to the end of the block or `at_most` bytes.
pub(crate) fn piece(offset: u64, at_most: u64) -> Bytes {
    let from = (offset % block().len() as u64) as usize;
    block().slice(from..block().len().min(from + at_most as usize))
}

/// Whether `bytes` match the payload at `offset`.
pub(crate) fn fits(mut offset: u64, mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        let piece = piece(offset, bytes.len() as u64);
        let (first, rest) = bytes.split_at(piece.len());
        if first != piece {
            return false;
        }
        offset += first.len() as u64;
        bytes = rest;
    }
    true
}
