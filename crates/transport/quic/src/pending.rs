//! An acknowledgement that is being collected.

use uncork_cc::{Acked, Lost};

use crate::ack::AckFrame;
use crate::observed::Space;

/// The reports collected for an acknowledgement or a loss timer. The stack reports each packet separately,
/// losses last.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub(crate) struct PendingAcks {
    pub(crate) is_open: bool,
    /// All acknowledged packets are known; another one belongs to the next acknowledgement.
    pub(crate) is_acked: bool,
    pub(crate) space: Space,
    pub(crate) acked: Vec<Acked>,
    pub(crate) lost: Vec<Lost>,
    /// The largest packet number ever acknowledged, if this is an acknowledgement.
    pub(crate) largest: Option<u64>,
    pub(crate) newest: Option<u64>,
    /// The ACK frame, for contents that the stack does not report.
    pub(crate) ack: Option<AckFrame>,
    pub(crate) is_marked: bool,
    pub(crate) is_persistent: bool,
    pub(crate) is_drained: bool,
    pub(crate) mtu: Option<u16>,
}

impl PendingAcks {
    pub(crate) fn clear(&mut self) {
        let Self { mut acked, mut lost, .. } = std::mem::take(self);
        acked.clear();
        lost.clear();
        (self.acked, self.lost) = (acked, lost);
    }
}
