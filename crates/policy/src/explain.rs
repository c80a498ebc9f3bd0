//! Why a connection is given what it is given.

use std::fmt;

use crate::policy::{Gives, Rule};
use crate::{Decision, Fact, Facts, Policy, Verdict};

/// What each rule says to the facts, and what is decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation<'p> {
    /// The rules in order, those that are never asked included.
    pub rules: Vec<RuleTrace<'p>>,
    /// What is decided.
    pub decision: Decision<'p>,
}

/// What a rule says to the facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleTrace<'p> {
    /// Its index, from 0.
    pub index: usize,
    /// Its name, if it has one.
    pub name: Option<&'p str>,
    /// The line of the policy's text that it begins on, from 1.
    pub line: usize,
    /// What becomes of it.
    pub outcome: Asked,
    /// All that it asks, also where one condition settled it.
    pub conditions: Vec<ConditionTrace<'p>>,
}

/// What becomes of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// It decides.
    Decides,
    /// It does not hold.
    Fails,
    /// It may hold when more is known.
    Waits,
    /// A rule before it decides.
    Never,
}

/// What a condition says to the facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionTrace<'p> {
    /// The condition as it was written.
    pub written: &'p str,
    /// Whether it holds.
    pub verdict: Verdict,
    /// What it was asked of, in words: ``the host is `cdn.example` ``.
    pub found: String,
}

impl Policy {
    /// What each rule says to `facts`, and what [`Policy::decide`] decides.
    pub fn explain(&self, facts: &Facts<'_>) -> Explanation<'_> {
        let mut decided = false;
        let trace = |(index, rule): (usize, &'_ Rule)| {
            let outcome = match self.given(rule, facts) {
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
        own.chain(self.part(rule, facts)).collect()
    }

    /// Whether the client takes part in the rule's experiment, if it has one.
    fn part<'p>(&'p self, rule: &'p Rule, facts: &Facts<'_>) -> Option<ConditionTrace<'p>> {
        let Gives::Experiment(index) = rule.gives else { return None };
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

impl fmt::Display for Explanation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for rule in &self.rules {
            write!(f, "rule {}", rule.index + 1)?;
            if let Some(name) = rule.name {
                write!(f, " `{name}`")?;
            }
            writeln!(f, " (line {}) {}", rule.line, rule.outcome)?;
            if rule.outcome != Asked::Never {
                for ConditionTrace { written, verdict, found } in &rule.conditions {
                    writeln!(f, "    {written}: {verdict}, {found}")?;
                }
            }
        }
        writeln!(f, "{}", self.decision)
    }
}
