//! Which of a signer's policies one is.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A signed policy among those of the same key: a later one has a higher serial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct Release {
    /// The first 16 hexadecimal digits of the SHA-256 of the public key.
    #[cfg_attr(feature = "schemars", schemars(extend("pattern" = "^[0-9a-f]{16}$")))]
    pub key: String,
    /// Rises from one policy to the next. `uncork learn` takes the Unix time in seconds. 0 if the signer gave none.
    pub serial: u64,
    /// The number of the version, as `uncork learn` counts.
    pub version: Option<u64>,
}

impl Release {
    /// Whether the signer made the other one later.
    pub fn is_older_than(&self, other: &Self) -> bool {
        self.serial < other.serial
    }

    /// Why an older policy of the same signer could be put in the place of this one, and the remedy.
    pub fn warning(&self) -> Option<&'static str> {
        (self.serial == 0).then_some(
            "the signed list has no `serial`, so an older policy of the same key can replace it; sign a number that rises \
             with each policy",
        )
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.version {
            Some(version) if version == self.serial => write!(f, "version {version}"),
            Some(version) => write!(f, "version {version} (serial {})", self.serial),
            None => write!(f, "serial {}", self.serial),
        }
    }
}
