//! An explanation as a document: `docs/schemas/policy-explain.json`.

use serde::Serialize;

use crate::{Asked, Assignment, By, Decision, Explanation, Policy, RuleTrace, Verdict};

/// The evaluation of each rule of a policy for a request, and the decision.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ExplanationDocument<'a> {
    /// The policy's name.
    policy: &'a str,
    /// Its fingerprint, as in records.
    fingerprint: String,
    /// The decision.
    decision: DecisionDocument<'a>,
    /// The rules in order, including those after the deciding one.
    rules: Vec<Ruled<'a>>,
}

/// The settings of the connection, as far as the known facts determine them.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct DecisionDocument<'a> {
    /// The rule that decides, counted from 1; null if the default decides.
    rule: Option<usize>,
    /// The rule's name, if it has one.
    name: Option<&'a str>,
    /// Whether no further fact can change the decision.
    #[serde(rename = "final")]
    is_final: bool,
    /// The controller of QUIC.
    quic: String,
    /// The controller of TCP; null leaves the system's.
    tcp: Option<&'a str>,
    /// The initial congestion window.
    initial_window: Option<String>,
    /// The rate at which it leaves over TCP: `burst` or a rate; null leaves the pacing to the kernel.
    initial_rate: Option<String>,
    /// The pacing cap.
    pacing_cap_bps: Option<u64>,
    /// How QUIC uses ECN: `none`, `classic` or `l4s`.
    ecn: &'static str,
    /// Whether a connection may begin from what an earlier one observed; over TCP with a controller of `uncork kernel load --resume`.
    resume: bool,
    /// The arm, if the rule has an experiment.
    arm: Option<Assignment<'a>>,
}

/// The evaluation of a rule.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Ruled<'a> {
    /// The rule, counted from 1.
    rule: usize,
    /// Its name, if it has one.
    name: Option<&'a str>,
    /// The line of the policy on which it begins.
    line: usize,
    /// The outcome.
    outcome: Asked,
    /// All its conditions, even if one alone settled the outcome.
    conditions: Vec<Tested<'a>>,
}

/// The evaluation of a condition.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Tested<'a> {
    /// The condition's source text.
    condition: &'a str,
    /// Whether it holds; null if the fact is not known yet.
    holds: Option<bool>,
    /// The fact that it was evaluated on, in words.
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
        ecn: settings.quic_ecn().name(),
        resume: settings.resume,
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

#[cfg(test)]
mod tests {
    use uncork_testkit::assert_schema;

    use super::*;

    #[test]
    fn schema_is_current() {
        let title = "`uncork policy explain --format json`";
        assert_schema!(ExplanationDocument<'_>, "policy-explain", title);
    }
}
