//! Results as documents: `docs/schemas/steer-1.json`, `steer-explain-1.json` and `steer-move-1.json`.

use serde::Serialize;
use uncork_policy::{bucket, slot};

use crate::description::Decided;
use crate::moves::Moves;
use crate::pending::PendingStatus;
use crate::question::{Answer, Question};
use crate::steered::{Count, Status};

/// The active policies.
#[derive(Debug, Serialize)]
pub struct StatusDocument {
    schema: &'static str,
    /// The cgroups.
    pub cgroups: Vec<CgroupDocument>,
}

/// The active policy of a cgroup.
#[derive(Debug, Serialize)]
pub struct CgroupDocument {
    /// The cgroup's path.
    pub cgroup: String,
    /// The policy's name.
    pub policy: String,
    fingerprint: String,
    applied_unix_s: i64,
    networks: u64,
    warnings: Vec<String>,
    /// Whether it is rolled back unless it is confirmed.
    pub pending: Option<PendingStatus>,
    /// Of the program, if the kernel counts.
    runs: u64,
    run_ns: u64,
    verified_instructions: u32,
    /// What can be decided.
    pub decided: Vec<DecidedDocument>,
}

/// A decision, and the connections that got it.
#[derive(Debug, Serialize)]
pub struct DecidedDocument {
    #[serde(flatten)]
    pub(crate) decided: Decided,
    /// Connections since the policy was applied.
    pub connections: u64,
    /// Of them, with a controller or cap that the kernel refused.
    pub(crate) refused: u64,
    /// Of them, with an initial window that the kernel refused, because data had left already.
    pub(crate) windows_refused: u64,
    #[serde(rename = "unkept")]
    pub(crate) table_full: u64,
}

/// What a client gets.
#[derive(Debug, Serialize)]
pub struct ExplanationDocument {
    schema: &'static str,
    pub(crate) client: String,
    pub(crate) port: Option<u16>,
    unix_s: i64,
    policy: String,
    #[serde(flatten)]
    pub(crate) decided: Decided,
    unit: Option<u64>,
    pub(crate) slot: Option<u16>,
    pub(crate) bucket: Option<u8>,
}

/// Moved connections.
#[derive(Debug, Serialize)]
pub struct MoveDocument {
    schema: &'static str,
    dry_run: bool,
    cgroups: Vec<Moves>,
}

impl StatusDocument {
    /// The cgroups of `all`.
    pub fn new(all: &[Status]) -> Self {
        Self { schema: "uncork.steer/1", cgroups: all.iter().map(CgroupDocument::new).collect() }
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
            schema: "uncork.steer.explain/1",
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
        Self { schema: "uncork.steer.move/1", dry_run, cgroups }
    }
}
