//! Results as documents: `docs/schemas/steer-1.json`, `steer-explain-1.json` and `steer-move-1.json`.

use serde::Serialize;
use uncork_policy::{bucket, slot};

use crate::description::Decided;
use crate::moves::Moves;
use crate::pending::PendingStatus;
use crate::question::{Answer, Question};
use crate::steered::{Count, Status};

const STATUS: &str = "uncork.steer/1";
const EXPLANATION: &str = "uncork.steer.explain/1";
const MOVE: &str = "uncork.steer.move/1";

/// The active policies of cgroups, and what their connections got.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StatusDocument {
    #[cfg_attr(test, schemars(extend("const" = STATUS)))]
    schema: &'static str,
    /// The cgroups.
    pub cgroups: Vec<CgroupDocument>,
}

/// The active policy of a cgroup.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CgroupDocument {
    /// The cgroup's directory.
    pub cgroup: String,
    /// The policy's file, as it was given.
    pub policy: String,
    /// The policy's fingerprint, as in records.
    fingerprint: String,
    /// When it was applied.
    applied_unix_s: i64,
    /// Networks that the kernel looks up.
    networks: u64,
    /// Conditions of the policy that never match here.
    warnings: Vec<String>,
    /// The policy is rolled back unless `uncork steer confirm` keeps it; null if it is not.
    pub pending: Option<PendingStatus>,
    /// How often the program ran, if the kernel counts (`kernel.bpf_stats_enabled`).
    runs: u64,
    /// How long it ran in all.
    run_ns: u64,
    /// Instructions that the kernel's verifier processed for the program (its limit is a million).
    verified_instructions: u32,
    /// What can be decided; the first is the default.
    pub decided: Vec<DecidedDocument>,
}

/// A decision, and the connections that got it.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DecidedDocument {
    #[serde(flatten)]
    pub(crate) decided: Decided,
    /// Connections since the policy was applied.
    pub connections: u64,
    /// Of these, connections with a controller or cap that the kernel refused.
    pub(crate) refused: u64,
    /// Of these, connections that kept the kernel's initial window, because data had left already or packets of the handshake were lost.
    pub(crate) windows_refused: u64,
    /// Of these, connections without a record, for lack of memory.
    #[serde(rename = "unkept")]
    pub(crate) table_full: u64,
}

/// What the active program gives a client.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ExplanationDocument {
    #[cfg_attr(test, schemars(extend("const" = EXPLANATION)))]
    schema: &'static str,
    /// The client's address.
    pub(crate) client: String,
    /// The local port; null if the service opens the connection.
    pub(crate) port: Option<u16>,
    /// The time that was asked about.
    unix_s: i64,
    /// The policy's fingerprint, as in records.
    policy: String,
    #[serde(flatten)]
    pub(crate) decided: Decided,
    /// The hash of the client's network; null without an experiment, as the next two.
    unit: Option<u64>,
    /// The slot, which determines the arm.
    pub(crate) slot: Option<u16>,
    /// The bucket, independent of the arm.
    pub(crate) bucket: Option<u8>,
}

/// Open connections that the active policy gives other settings, and what became of them.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MoveDocument {
    #[cfg_attr(test, schemars(extend("const" = MOVE)))]
    schema: &'static str,
    /// Nothing was moved: `moved`, `refused` and `ended` are null.
    dry_run: bool,
    cgroups: Vec<Moves>,
}

impl StatusDocument {
    /// The cgroups of `all`.
    pub fn new(all: &[Status]) -> Self {
        Self { schema: STATUS, cgroups: all.iter().map(CgroupDocument::new).collect() }
    }
}

impl CgroupDocument {
    fn new(status: &Status) -> Self {
        let Status { description, counts, cost: (run_ns, runs), .. } = status.clone();
        let decided = description.decided.into_iter().zip(counts).map(|(decided, count)| {
            let Count { connections, refused, windows_refused, table_full } = count;
            DecidedDocument { decided, connections, refused, windows_refused, table_full }
        });
        Self {
            decided: decided.collect(),
            cgroup: description.cgroup,
            policy: description.policy,
            fingerprint: description.fingerprint,
            applied_unix_s: description.applied_unix_s,
            networks: description.networks,
            warnings: description.warnings,
            pending: status.pending.clone(),
            runs,
            run_ns,
            verified_instructions: status.verified_instructions,
        }
    }
}

impl ExplanationDocument {
    pub(crate) fn new(question: &Question, answer: &Answer, decided: Decided) -> Self {
        let unit = decided.arm.as_ref().map(|_| answer.unit);
        Self {
            schema: EXPLANATION,
            client: question.client.to_string(),
            port: question.port,
            unix_s: question.unix_s,
            policy: format!("{:016x}", answer.policy),
            decided,
            unit,
            slot: unit.map(slot),
            bucket: unit.map(bucket),
        }
    }
}

impl MoveDocument {
    /// What was moved in `cgroups`, or would be.
    pub fn new(cgroups: Vec<Moves>, dry_run: bool) -> Self {
        Self { schema: MOVE, dry_run, cgroups }
    }
}

#[cfg(test)]
mod tests {
    use uncork_testkit::assert_schema;

    use super::*;

    #[test]
    fn schemas_are_current() {
        assert_schema!(StatusDocument, "steer-1", "`uncork steer status --format json`");
        assert_schema!(
            ExplanationDocument,
            "steer-explain-1",
            "`uncork steer explain --format json`"
        );
        assert_schema!(MoveDocument, "steer-move-1", "`uncork steer move --format json`");
    }
}
