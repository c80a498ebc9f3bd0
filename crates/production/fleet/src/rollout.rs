//! The rollout: one signed document of a fleet, which says which hosts run which version.

use serde::{Deserialize, Serialize};
use uncork_policy::{PublicKey, sha256};

use crate::{HostName, Kind, SealError, SigningKey, Stage};

/// Which hosts run which version. The default is the one of a store in which nothing was published.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rollout {
    /// Rises with each change. An agent refuses a lower one than it has seen.
    pub serial: u64,
    /// When it was signed.
    pub made_unix_s: u64,
    /// The version of the hosts that no stage has; the default of the host if there is none.
    pub stable: Option<Target>,
    /// The version that goes out, to the hosts of its stages.
    pub next: Option<Progress>,
    /// The highest version that was rolled back. Agents return from it, and from lower ones, to `stable`.
    pub rolled_back: Option<u64>,
    /// Whether all hosts stay where they are.
    pub frozen: bool,
    /// The highest version that was ever published.
    pub highest: u64,
}

/// A bundle in the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Its version.
    pub version: u64,
    /// The SHA-256 of all its bytes.
    pub sha256: String,
    /// From when on it does not count.
    pub expires_unix_s: u64,
}

/// How far a version is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// The version.
    pub target: Target,
    /// All stages. The last one has all hosts.
    pub stages: Vec<Stage>,
    /// The current one; the hosts of those before stay in.
    pub stage: usize,
    /// When that began.
    pub since_unix_s: u64,
    /// How long a stage is held at least.
    pub hold_s: u64,
}

impl Target {
    /// The bundle's object. Its name has the version and the content.
    pub fn object(&self) -> String {
        let digest: String = self.sha256.chars().take(16).collect();
        format!("bundles/{:010}-{digest}.bundle", self.version)
    }
}

impl Progress {
    /// Whether a host is in a stage that has begun.
    pub fn has(&self, host: &HostName, place: Option<&HostName>) -> bool {
        Stage::any_has(&self.stages[..self.stages.len().min(self.stage + 1)], host, place)
    }
}

impl Rollout {
    /// The object in the store.
    pub const OBJECT: &str = "rollout";

    /// The version that a host shall run, but for a freeze; `None` is the host's default.
    pub fn target_of(&self, host: &HostName, place: Option<&HostName>) -> Option<&Target> {
        let next = self.next.as_ref().filter(|next| next.has(host, place));
        next.map(|next| &next.target).or(self.stable.as_ref())
    }

    /// The signed file.
    pub fn seal(&self, key: &SigningKey) -> Result<Vec<u8>, serde_json::Error> {
        Ok(Kind::Rollout.seal(&serde_json::to_vec(self)?, key))
    }

    /// Reads the document of a signed file.
    ///
    /// # Errors
    ///
    /// If the owner of none of the keys has signed it, or it is another document.
    pub fn open(file: &[u8], keys: &[PublicKey]) -> Result<(Self, Origin), RolloutError> {
        let opened = Kind::Rollout.open(file, keys)?;
        let rollout: Self = serde_json::from_slice(opened.body)?;
        Ok((rollout, Origin { sha256: sha256(file), key: opened.key.id() }))
    }
}

/// The file that a rollout was read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The SHA-256 of all its bytes.
    pub sha256: String,
    /// The ID of the key that has signed it ([`PublicKey::id`]).
    pub key: String,
}

/// Why a file is not a rollout.
#[derive(Debug, thiserror::Error)]
pub enum RolloutError {
    /// Its signature does not count.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// It is signed, but another document.
    #[error("it is not as expected: {0}; was it written by another version of uncork?")]
    Document(#[from] serde_json::Error),
}
