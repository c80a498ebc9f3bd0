//! What a policy's numbers mean: the names, for status and records. It is pinned with the policy.

use serde::{Deserialize, Serialize};
use uncork_policy::{By, Flat, Policy};
use uncork_units::Rate;

/// A policy in force.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// The policy's name: its file.
    pub policy: String,
    /// Its fingerprint, as in records.
    pub fingerprint: String,
    /// The cgroup's path.
    pub cgroup: String,
    /// When it was applied.
    pub applied_unix_s: i64,
    /// The names of listeners and their ports.
    pub listeners: Vec<(String, u16)>,
    /// How many networks the kernel looks up.
    pub networks: u64,
    /// What can be decided; the first is the default.
    pub decided: Vec<Decided>,
}

/// What can be decided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decided {
    /// The rule, counted from 1; `None` for the default.
    pub rule: Option<u16>,
    /// The rule's name, if it has one.
    pub name: Option<String>,
    /// The line of the policy on which it begins.
    pub line: Option<usize>,
    /// The experiment, if the rule has one.
    pub experiment: Option<String>,
    /// The arm.
    pub arm: Option<String>,
    /// The share of all units in this arm.
    pub propensity: Option<f64>,
    /// The controller; `None` leaves the system's.
    pub tcp: Option<String>,
    /// The pacing cap.
    pub pacing_cap_bps: Option<u64>,
}

impl Description {
    pub(crate) fn new(policy: &Policy, flat: &Flat) -> Self {
        let decided = flat.outcomes.iter().map(|outcome| {
            let line = outcome.rule.and_then(|rule| flat.rules.get(usize::from(rule)));
            let arm = outcome.arm.as_ref();
            Decided {
                rule: outcome.rule.map(|rule| rule + 1),
                name: outcome.name.clone(),
                line: line.map(|rule| rule.line),
                experiment: arm.map(|arm| arm.experiment.clone()),
                arm: arm.map(|arm| arm.arm.clone()),
                propensity: arm.map(|arm| arm.propensity.as_f64()),
                tcp: outcome.tcp.clone(),
                pacing_cap_bps: outcome.pacing_cap.map(Rate::bits_per_sec),
            }
        });
        Self {
            policy: policy.name().to_owned(),
            fingerprint: format!("{:016x}", policy.fingerprint()),
            cgroup: String::new(),
            applied_unix_s: 0,
            listeners: Vec::new(),
            networks: flat.networks.len() as u64,
            decided: decided.collect(),
        }
    }
}

impl Decided {
    /// What decided.
    pub fn by(&self) -> By<'_> {
        let rule = |number| By::Rule { index: usize::from(number) - 1, name: self.name.as_deref() };
        self.rule.map_or(By::Default, rule)
    }
}
