//! An explanation as a document.

use serde::Serialize;

use crate::{Asked, Assignment, By, Decision, Explanation, Policy, RuleTrace, Verdict};

/// An explanation: `docs/schemas/policy-explain.json`.
#[derive(Debug, Serialize)]
pub struct ExplanationDocument<'a> {
    policy: &'a str,
    /// Fingerprint as in records.
    fingerprint: String,
    decision: DecisionDocument<'a>,
    rules: Vec<Ruled<'a>>,
}

#[derive(Debug, Serialize)]
struct DecisionDocument<'a> {
    /// Counted from 1; null if the default decides.
    rule: Option<usize>,
    name: Option<&'a str>,
    #[serde(rename = "final")]
    is_final: bool,
    quic: String,
    tcp: Option<&'a str>,
    initial_window: Option<String>,
    initial_rate: Option<String>,
    pacing_cap_bps: Option<u64>,
    arm: Option<Assignment<'a>>,
}

#[derive(Debug, Serialize)]
struct Ruled<'a> {
    rule: usize,
    name: Option<&'a str>,
    line: usize,
    outcome: Asked,
    conditions: Vec<Tested<'a>>,
}

#[derive(Debug, Serialize)]
struct Tested<'a> {
    condition: &'a str,
    holds: Option<bool>,
    found: &'a str,
}

impl Explanation<'_> {
    /// The explanation as a document; `policy` is the policy that was asked.
    pub fn document<'a>(&'a self, policy: &'a Policy) -> ExplanationDocument<'a> {
        ExplanationDocument {
            policy: policy.name(),
            fingerprint: format!("{:016x}", policy.fingerprint()),
            decision: decided(&self.decision),
            rules: self.rules.iter().map(rule).collect(),
        }
    }
}

fn decided<'a>(decision: &Decision<'a>) -> DecisionDocument<'a> {
    let (rule, name) = match decision.by {
        By::Default => (None, None),
        By::Rule { index, name } => (Some(index + 1), name),
    };
    let settings = decision.settings;
    DecisionDocument {
        rule,
        name,
        is_final: decision.is_final,
        quic: settings.quic.to_string(),
        tcp: settings.tcp.as_deref(),
        initial_window: settings.initial_window.map(|it| it.to_string()),
        initial_rate: settings.initial_rate.map(|it| it.to_string()),
        pacing_cap_bps: settings.pacing_cap.map(uncork_units::Rate::bits_per_sec),
        arm: decision.experiment,
    }
}

fn rule<'a>(trace: &'a RuleTrace<'_>) -> Ruled<'a> {
    let conditions = trace.conditions.iter().map(|it| Tested {
        condition: it.written,
        holds: match it.verdict {
            Verdict::Yes => Some(true),
            Verdict::No => Some(false),
            Verdict::Unknown => None,
        },
        found: &it.found,
    });
    Ruled {
        rule: trace.index + 1,
        name: trace.name,
        line: trace.line,
        outcome: trace.outcome,
        conditions: conditions.collect(),
    }
}
