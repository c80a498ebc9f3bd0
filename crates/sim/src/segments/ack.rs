//! What a receiver tells.

use super::ranges::Range;

/// SACK blocks that fit beside a timestamp option (RFC 2018 §3).
pub(crate) const SACK_BLOCKS: usize = 3;

/// An acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ack {
    /// Every segment below this has arrived.
    pub(crate) cumulative: u64,
    /// Ranges above it that have arrived, the most recently changed one first.
    pub(crate) sack: [Range; SACK_BLOCKS],
    /// How many of `sack` count.
    pub(crate) blocks: u8,
    /// The segment whose arrival sent this ACK, and its transmission number (the timestamp echo).
    pub(crate) trigger: (u64, u64),
    /// Whether that segment had arrived before (RFC 2883 D-SACK).
    pub(crate) duplicate: bool,
}

impl Ack {
    pub(crate) fn sack_blocks(&self) -> &[Range] {
        &self.sack[..usize::from(self.blocks)]
    }
}
