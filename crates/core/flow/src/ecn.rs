//! How a connection used Explicit Congestion Notification.

use serde::{Deserialize, Serialize};

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
