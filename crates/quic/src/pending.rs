//! What was told of one acknowledgement.

use uncork_cc::{Acked, Lost};

use crate::ack::AckFrame;
use crate::observed::Space;

/// What one acknowledgement, or one timer, has told so far. The stack tells of each packet by itself,
/// and of losses after everything else.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "what was told, one by one")]
pub(crate) struct Pending {
    pub(crate) is_open: bool,
    /// All that is acknowledged has been told; another packet belongs to another acknowledgement.
    pub(crate) is_acked: bool,
    pub(crate) space: Space,
    pub(crate) acked: Vec<Acked>,
    pub(crate) lost: Vec<Lost>,
    /// The largest packet number acknowledged so far, if this acknowledges it for the first time.
    pub(crate) largest: Option<u64>,
    pub(crate) newest: Option<u64>,
    /// What it says besides, which the stack keeps to itself.
    pub(crate) ack: Option<AckFrame>,
    pub(crate) is_marked: bool,
    pub(crate) is_persistent: bool,
    pub(crate) is_drained: bool,
    pub(crate) mtu: Option<u16>,
}

impl Pending {
    pub(crate) fn clear(&mut self) {
        let Self { mut acked, mut lost, .. } = std::mem::take(self);
        acked.clear();
        lost.clear();
        (self.acked, self.lost) = (acked, lost);
    }
}
