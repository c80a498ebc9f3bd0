//! What others say of a version while it goes out: `docs/schemas/fleet-gate-1.json`.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::Progress;

const SCHEMA: &str = "uncork.fleet-gate/1";

/// A verdict on a version, such as that of guardrails on its records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Gate {
    /// The name of this format.
    #[cfg_attr(test, schemars(extend("const" = SCHEMA)))]
    pub schema: String,
    /// The version that was judged.
    pub version: u64,
    /// When, as Unix time. A verdict of before the stage began does not let it go on.
    pub unix_s: u64,
    /// Whether the version must not go on.
    pub stop: bool,
    /// Why.
    pub reason: String,
}

/// Why a file is not a verdict.
#[derive(Debug, Error)]
pub enum GateError {
    /// Not JSON, or other fields.
    #[error("it is not a verdict: {0}; see docs/schemas/fleet-gate-1.json")]
    Document(#[from] serde_json::Error),
    /// Another schema.
    #[error("it has the schema {0:?}; expected {SCHEMA:?}")]
    Schema(String),
}

/// What a verdict means for a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum GateDecision {
    /// It may go on.
    Go,
    /// It has to wait.
    Wait(String),
    /// It must not go on.
    Stop(String),
}

impl Gate {
    /// Reads a verdict.
    ///
    /// # Errors
    ///
    /// If it is another document.
    pub fn read(bytes: &[u8]) -> Result<Self, GateError> {
        let gate: Self = serde_json::from_slice(bytes)?;
        if gate.schema == SCHEMA { Ok(gate) } else { Err(GateError::Schema(gate.schema)) }
    }

    /// What it says of a stage.
    pub(crate) fn of(&self, next: &Progress) -> GateDecision {
        let (version, judged) = (next.target.version, self.version);
        if judged != version {
            return GateDecision::Wait(format!(
                "the verdict is on version {judged}, not on {version}"
            ));
        }
        if self.stop {
            return GateDecision::Stop(self.reason.clone());
        }
        if self.unix_s < next.since_unix_s {
            return GateDecision::Wait("the verdict is of before this stage began".to_owned());
        }
        GateDecision::Go
    }
}

#[cfg(test)]
mod tests {
    use uncork_testkit::assert_schema;

    use super::*;
    use crate::Target;

    fn next() -> Progress {
        let target = Target { version: 7, sha256: String::new(), expires_unix_s: 0 };
        Progress { target, stages: Vec::new(), stage: 0, since_unix_s: 100, hold_s: 10 }
    }

    #[test]
    fn verdict_lets_go_only_the_version_and_stage_that_it_has_seen() {
        let gate = |version, unix_s, stop| Gate {
            schema: SCHEMA.to_owned(),
            version,
            unix_s,
            stop,
            reason: "retransmissions".to_owned(),
        };
        assert_eq!(gate(7, 100, false).of(&next()), GateDecision::Go);
        assert!(matches!(gate(7, 99, false).of(&next()), GateDecision::Wait(_)));
        assert!(matches!(gate(6, 100, true).of(&next()), GateDecision::Wait(_)));
        // A stop counts however old it is.
        assert_eq!(gate(7, 0, true).of(&next()), GateDecision::Stop("retransmissions".to_owned()));
        let bytes = serde_json::to_vec(&gate(7, 1, true)).unwrap();
        assert_eq!(Gate::read(&bytes).unwrap(), gate(7, 1, true));
        assert!(Gate::read(b"{}").is_err());
    }

    #[test]
    fn schema_is_current() {
        assert_schema!(Gate, "fleet-gate-1", "the file of `uncork fleet publish --stop-if`");
    }
}
