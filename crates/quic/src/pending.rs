//! An acknowledgement that is being collected.

use uncork_cc::{Acked, Lost};

use crate::ack::AckFrame;
use crate::observed::Space;

/// An acknowledgement, or a loss timer, as far as it is known. The stack reports each packet separately,
/// and losses last.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub(crate) struct Pending {
    pub(crate) is_open: bool,
    /// All acknowledged packets are known; another one belongs to the next acknowledgement.
    pub(crate) is_acked: bool,
    pub(crate) space: Space,
    pub(crate) acked: Vec<Acked>,
    pub(crate) lost: Vec<Lost>,
    /// The largest packet number ever acknowledged, if this is an acknowledgement.
    pub(crate) largest: Option<u64>,
    pub(crate) newest: Option<u64>,
    /// The frame, for what the stack does not report.
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
