//! What tests in real time have in common: bytes that are known wherever they are.

use std::sync::OnceLock;

use bytes::Bytes;

/// What is sent, over and over again. Its length is a prime, so nothing that is shifted fits.
pub(crate) fn block() -> &'static Bytes {
    static BLOCK: OnceLock<Bytes> = OnceLock::new();
    BLOCK.get_or_init(|| {
        let mut random = uncork_units::Rng::new(7, 0);
        (0..65_521).map(|_| random.next_u64() as u8).collect()
    })
}

/// The next piece of what is sent, from `offset` on.
pub(crate) fn piece(offset: u64, at_most: u64) -> Bytes {
    let from = (offset % block().len() as u64) as usize;
    block().slice(from..block().len().min(from + at_most as usize))
}

/// Whether `bytes` are what is sent at `offset`.
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
