//! An explanation as JSON.

use serde::Serialize;
use uncork_policy::{Asked, Assignment, By, Decision, Explanation, Policy, RuleTrace, Verdict};

use crate::failure::Failure;

/// The output of `--format json` (`docs/reference/policy.md`).
#[derive(Serialize)]
struct ExplanationDocument<'a> {
    policy: &'a str,
    /// Fingerprint as in records.
    fingerprint: String,
    decision: DecisionDocument<'a>,
    rules: Vec<Ruled<'a>>,
}

#[derive(Serialize)]
struct DecisionDocument<'a> {
    /// Counted from 1; null if the default decides.
    rule: Option<usize>,
    name: Option<&'a str>,
    #[serde(rename = "final")]
    is_final: bool,
    quic: String,
    tcp: Option<&'a str>,
    initial_window: Option<String>,
    pacing_cap_bps: Option<u64>,
    arm: Option<Assigned<'a>>,
}

#[derive(Serialize)]
struct Assigned<'a> {
    experiment: &'a str,
    arm: &'a str,
    unit: u64,
    slot: u16,
    bucket: u8,
    propensity: f64,
}

#[derive(Serialize)]
struct Ruled<'a> {
    rule: usize,
    name: Option<&'a str>,
    line: usize,
    outcome: &'static str,
    conditions: Vec<Tested<'a>>,
}

#[derive(Serialize)]
struct Tested<'a> {
    condition: &'a str,
    holds: Option<bool>,
    found: &'a str,
}

/// The document for `explanation` of `policy`.
pub(super) fn document(policy: &Policy, explanation: &Explanation<'_>) -> Result<Vec<u8>, Failure> {
    let document = ExplanationDocument {
        policy: policy.name(),
        fingerprint: format!("{:016x}", policy.fingerprint()),
        decision: decided(&explanation.decision),
        rules: explanation.rules.iter().map(rule).collect(),
    };
    let text = serde_json::to_vec_pretty(&document);
    let mut text = text.map_err(|error| Failure::Environment(format!("no JSON: {error}")))?;
    text.push(b'\n');
    Ok(text)
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
        pacing_cap_bps: settings.pacing_cap.map(uncork_units::Rate::bits_per_sec),
        arm: decision.experiment.map(arm),
    }
}

fn arm(assignment: Assignment<'_>) -> Assigned<'_> {
    let Assignment { experiment, arm, unit, slot, bucket, propensity } = assignment;
    Assigned { experiment, arm, unit, slot, bucket, propensity: propensity.as_f64() }
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
        outcome: match trace.outcome {
            Asked::Decides => "decides",
            Asked::Fails => "fails",
            Asked::Waits => "waits",
            Asked::Never => "never_asked",
        },
        conditions: conditions.collect(),
    }
}
