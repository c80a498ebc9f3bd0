//! Acknowledgements.

use super::Segment;
use super::accecn::EcnEcho;
use super::ranges::Range;
use crate::spec::FlowSpec;

/// SACK blocks that fit next to a timestamp option (RFC 2018 §3).
pub(crate) const SACK_BLOCKS: usize = 3;

/// An acknowledgement.
//= bbr-06 4.1.3.5-3
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ack {
    /// Every segment below this has arrived.
    pub(crate) cumulative: u64,
    /// Ranges above it that have arrived.
    pub(crate) sack: [SackBlock; SACK_BLOCKS],
    /// The segment that triggered this ACK by its arrival. It identifies the transmission, like the
    /// echoed timestamp in TCP.
    pub(crate) trigger: Segment,
    /// Whether that segment is a duplicate (RFC 2883 D-SACK).
    pub(crate) duplicate: bool,
    /// Marks received so far.
    pub(crate) ecn: EcnEcho,
    /// The receive window in bytes.
    pub(crate) window: u64,
}

/// A range in compact form, because the ACK is copied at each step on its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SackBlock {
    /// Offset of the start from the cumulative ACK.
    above: u32,
    /// Zero means no block.
    length: u32,
}

impl Ack {
    /// An ACK for all segments below `cumulative` and for as many of `blocks` as fit.
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
        let (ecn, window) = (EcnEcho::marks(0), FlowSpec::WIDE_OPEN);
        Self { cumulative, sack, trigger, duplicate: false, ecn, window }
    }

    pub(crate) fn sack_blocks(&self) -> impl Iterator<Item = Range> {
        self.sack.iter().take_while(|block| block.length > 0).map(|block| {
            let start = self.cumulative + u64::from(block.above);
            Range { start, end: start + u64::from(block.length) }
        })
    }
}
