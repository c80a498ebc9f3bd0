//! How a connection used Explicit Congestion Notification.

use serde::{Deserialize, Serialize};
use uncork_ecn::FlowEvidence;

use crate::record::FlowRecord;

/// How a connection used Explicit Congestion Notification at the end of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemars"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum EcnUse {
    /// Not-ECT, as chosen.
    None,
    /// ECT(0): a mark counts as a loss.
    Classic,
    /// ECT(1): L4S (RFC 9331).
    L4s,
    /// Not-ECT, because marks were missing or wrong (RFC 9000 §13.4.2.1).
    Failed,
}

impl EcnUse {
    const ALL: [Self; 4] = [Self::None, Self::Classic, Self::L4s, Self::Failed];

    /// Its name in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Classic => "classic",
            Self::L4s => "l4s",
            Self::Failed => "failed",
        }
    }

    /// The use of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }
}

/// What a connection's packets with ECT(1) have shown about the queue of its client network, in rounds of at least 25 ms:
/// [`FlowEvidence`] without the counts that the record has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemars"), derive(schemars::JsonSchema))]
pub struct EcnEvidence {
    /// Rounds.
    pub rounds: u32,
    /// Rounds with marks.
    pub marked_rounds: u32,
    /// Rounds with marks at a short queue.
    pub l4s_rounds: u32,
    /// Rounds with few marks and a standing queue.
    pub classic_rounds: u32,
    /// The smallest marked queue of each marked round, in microseconds, summed.
    pub marked_queue_us: u64,
    /// Whether the controller found a classic queue.
    pub fell_back: bool,
}

impl From<&FlowEvidence> for EcnEvidence {
    fn from(evidence: &FlowEvidence) -> Self {
        Self {
            rounds: evidence.rounds,
            marked_rounds: evidence.marked_rounds,
            l4s_rounds: evidence.l4s_rounds,
            classic_rounds: evidence.classic_rounds,
            marked_queue_us: evidence.marked_queue_us,
            fell_back: evidence.fell_back,
        }
    }
}

impl FlowRecord {
    /// The evidence about the queue of the client's network, if packets had ECT(1).
    pub fn ecn_evidence(&self) -> Option<FlowEvidence> {
        let service = self.service.as_ref()?;
        let evidence = service.ecn_evidence.as_deref()?;
        Some(FlowEvidence {
            packets: self.packets_sent,
            marked: self.packets_marked,
            rounds: evidence.rounds,
            marked_rounds: evidence.marked_rounds,
            l4s_rounds: evidence.l4s_rounds,
            classic_rounds: evidence.classic_rounds,
            marked_queue_us: evidence.marked_queue_us,
            ecn_fails: service.ecn == Some(EcnUse::Failed),
            fell_back: evidence.fell_back,
        })
    }
}
