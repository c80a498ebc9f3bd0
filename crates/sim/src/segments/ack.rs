//! What a receiver tells.

use super::Segment;
use super::ranges::Range;

/// SACK blocks of an ACK: one fewer than fit beside a timestamp option (RFC 2018 §3).
pub(crate) const SACK_BLOCKS: usize = 2;

/// An acknowledgement.
//= bbr-06 4.1.3.5-3
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ack {
    /// Every segment below this has arrived.
    pub(crate) cumulative: u64,
    /// Ranges above it that have arrived: the most recently changed one, then the highest.
    pub(crate) sack: [Range; SACK_BLOCKS],
    /// How many of `sack` count.
    pub(crate) blocks: u8,
    /// The segment whose arrival sent this ACK. That tells its transmissions apart, as the echo of
    /// its timestamp does in TCP.
    pub(crate) trigger: Segment,
    /// Whether that segment had arrived before (RFC 2883 D-SACK).
    pub(crate) duplicate: bool,
    /// Segments that arrived marked so far (RFC 9768: AccECN's counter, without its wrap).
    pub(crate) marked: u64,
}

impl Ack {
    pub(crate) fn sack_blocks(&self) -> &[Range] {
        &self.sack[..usize::from(self.blocks)]
    }
}
