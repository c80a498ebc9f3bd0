//! Explanations of decisions.

use std::fmt::{self, Write as _};

use serde::Serialize;

use crate::policy::{Action, Rule};
use crate::{Decision, Fact, Facts, Policy, Verdict};

/// The evaluation of each rule, and the decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation<'p> {
    /// All rules in order, including those after the deciding one.
    pub rules: Vec<RuleTrace<'p>>,
    /// The decision.
    pub decision: Decision<'p>,
}

/// The evaluation of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleTrace<'p> {
    /// Its index, from 0.
    pub index: usize,
    /// Its name, if it has one.
    pub name: Option<&'p str>,
    /// The line of the policy's text that it starts on, from 1.
    pub line: usize,
    /// The outcome.
    pub outcome: Asked,
    /// All its conditions, even if one alone settled the outcome.
    pub conditions: Vec<ConditionTrace<'p>>,
}

/// The outcome of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Asked {
    /// It decides.
    Decides,
    /// It does not match.
    Fails,
    /// It may match when more facts are known.
    Waits,
    /// An earlier rule decided.
    #[serde(rename = "never_asked")]
    Never,
}

/// The evaluation of a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionTrace<'p> {
    /// The condition's source text.
    pub written: &'p str,
    /// Whether it matches.
    pub verdict: Verdict,
    /// The fact it was evaluated on, in words: ``the host is `cdn.example` ``.
    pub found: String,
}

impl Policy {
    /// Evaluates every rule on `facts`; the decision equals that of [`Policy::decide`].
    pub fn explain(&self, facts: &Facts<'_>) -> Explanation<'_> {
        let mut decided = false;
        let trace = |(index, rule): (usize, &'_ Rule)| {
            let outcome = match self.evaluate(rule, facts) {
                _ if decided => Asked::Never,
                Fact::Known(_) => Asked::Decides,
                Fact::Unknown => Asked::Waits,
                Fact::Absent => Asked::Fails,
            };
            decided |= outcome == Asked::Decides;
            (index, outcome)
        };
        let outcomes: Vec<_> = self.rules.iter().enumerate().map(trace).collect();
        let rules =
            outcomes.into_iter().zip(&self.rules).map(|((index, outcome), rule)| RuleTrace {
                index,
                name: rule.name.as_deref(),
                line: rule.line,
                outcome,
                conditions: self.conditions(rule, facts),
            });
        Explanation { rules: rules.collect(), decision: self.decide(facts) }
    }

    fn conditions<'p>(&'p self, rule: &'p Rule, facts: &Facts<'_>) -> Vec<ConditionTrace<'p>> {
        let own = rule.conditions.iter().map(|condition| ConditionTrace {
            written: &condition.written,
            verdict: condition.test.verdict(facts),
            found: condition.test.found(facts),
        });
        own.chain(self.participation(rule, facts)).chain(self.entry(rule, facts)).collect()
    }

    /// The client's entry in the table, if the rule asks for one.
    fn entry<'p>(&'p self, rule: &'p Rule, facts: &Facts<'_>) -> Option<ConditionTrace<'p>> {
        let Action::Table(section) = rule.action else { return None };
        let table = self.table.as_ref()?;
        let verdict = table.settings(section, facts).test(|_| true);
        Some(ConditionTrace {
            written: table.written(section),
            verdict,
            found: table.found(section, facts),
        })
    }

    /// Whether the unit takes part in the rule's experiment, if the rule has one.
    fn participation<'p>(
        &'p self,
        rule: &'p Rule,
        facts: &Facts<'_>,
    ) -> Option<ConditionTrace<'p>> {
        let Action::Experiment(index) = rule.action else { return None };
        let experiment = self.experiments.get(index)?;
        let (verdict, found) = match (experiment.hash(facts), experiment.assignment(facts)) {
            (Fact::Unknown, _) => {
                (Verdict::Unknown, format!("{} is not known yet", experiment.unit))
            }
            (Fact::Absent, _) => (Verdict::No, format!("{} is absent", experiment.unit)),
            (_, Fact::Known((assignment, _))) => (Verdict::Yes, assignment.to_string()),
            (Fact::Known(hash), _) => {
                let slot = crate::experiment::slot(hash);
                (Verdict::No, format!("{} is in slot {slot}, which no arm has", experiment.unit))
            }
        };
        Some(ConditionTrace { written: &experiment.written, verdict, found })
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Decides => "decides",
            Self::Fails => "does not hold",
            Self::Waits => "may hold when more is known",
            Self::Never => "is not asked",
        })
    }
}

impl Explanation<'_> {
    /// The rules with their conditions, and the decision.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing into a string cannot fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, text: &mut String) -> fmt::Result {
        for rule in &self.rules {
            write!(text, "rule {}", rule.index + 1)?;
            if let Some(name) = rule.name {
                write!(text, " `{name}`")?;
            }
            writeln!(text, " (line {}) {}", rule.line, rule.outcome)?;
            if rule.outcome != Asked::Never {
                for ConditionTrace { written, verdict, found } in &rule.conditions {
                    writeln!(text, "    {written}: {verdict}, {found}")?;
                }
            }
        }
        writeln!(text, "{}", self.decision)
    }
}
