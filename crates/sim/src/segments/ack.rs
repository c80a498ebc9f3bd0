//! Acknowledgements.

use super::Segment;
use super::ranges::Range;

/// SACK blocks that fit beside a timestamp option (RFC 2018 §3).
pub(crate) const SACK_BLOCKS: usize = 3;

/// An acknowledgement.
//= bbr-06 4.1.3.5-3
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ack {
    /// Every segment below this has arrived.
    pub(crate) cumulative: u64,
    /// Ranges above it that have arrived.
    pub(crate) sack: [SackBlock; SACK_BLOCKS],
    /// The segment whose arrival sent this ACK. That tells its transmissions apart, as the echo of
    /// its timestamp does in TCP.
    pub(crate) trigger: Segment,
    /// Whether that segment had arrived before (RFC 2883 D-SACK).
    pub(crate) duplicate: bool,
    /// Segments that arrived marked so far (RFC 9768: AccECN's counter, without its wrap).
    pub(crate) marked: u64,
}

/// A range, in half of its size: each step on the way copies the ACK.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SackBlock {
    /// From the cumulative acknowledgement to the start.
    above: u32,
    /// Zero: there is no block.
    length: u32,
}

impl Ack {
    /// An acknowledgement of all segments below `cumulative`, and of `blocks` as far as they fit.
    pub(crate) fn new(
        cumulative: u64,
        blocks: impl IntoIterator<Item = Range>,
        trigger: Segment,
    ) -> Self {
        let mut sack = [SackBlock::default(); SACK_BLOCKS];
        for (block, range) in sack.iter_mut().zip(blocks) {
            let above = (range.start - cumulative) as u32;
            *block = SackBlock { above, length: (range.end - range.start) as u32 };
        }
        Self { cumulative, sack, trigger, duplicate: false, marked: 0 }
    }

    pub(crate) fn sack_blocks(&self) -> impl Iterator<Item = Range> {
        self.sack.iter().take_while(|block| block.length > 0).map(|block| {
            let start = self.cumulative + u64::from(block.above);
            Range { start, end: start + u64::from(block.length) }
        })
    }
}
