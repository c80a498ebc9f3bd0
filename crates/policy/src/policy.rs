//! A policy, and what it decides.

use std::hash::Hasher;

use siphasher::sip::SipHasher24;

use crate::condition::{Condition, Test};
use crate::experiment::Experiment;
use crate::{Assignment, By, Decision, Fact, Facts, PolicyError, Settings, Verdict, read};

/// Which controller for which connection.
#[derive(Clone, Debug)]
pub struct Policy {
    pub(crate) name: Box<str>,
    pub(crate) fingerprint: u64,
    pub(crate) when: When,
    pub(crate) default: Settings,
    pub(crate) experiments: Box<[Experiment]>,
    pub(crate) rules: Box<[Rule]>,
}

/// When a server asks the policy for the last time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum When {
    /// With a connection's first request: what is decided then stays.
    #[default]
    Once,
    /// With each request of a connection.
    EachRequest,
}

/// What connections of some kind are given.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) name: Option<Box<str>>,
    /// The line that it begins on, from 1.
    pub(crate) line: usize,
    pub(crate) conditions: Box<[Condition]>,
    pub(crate) gives: Gives,
}

/// What a rule gives.
#[derive(Clone, Debug)]
pub(crate) enum Gives {
    Settings(Settings),
    /// What the arm has that a unit is in, by the experiment's index. A unit that takes no part
    /// goes on to the next rule.
    Experiment(usize),
}

impl Policy {
    /// Reads the policy `name` from `text` (`docs/policy.md`).
    ///
    /// # Errors
    ///
    /// The first thing that is wrong, with its place and what to do.
    pub fn parse(name: &str, text: &str) -> Result<Self, PolicyError> {
        read::policy(name, text).map_err(|error| error.within(text, &[]))
    }

    /// What a connection of these facts is given: by the first rule that holds, as far as is known.
    pub fn decide(&self, facts: &Facts<'_>) -> Decision<'_> {
        let mut is_final = true;
        for (index, rule) in self.rules.iter().enumerate() {
            match self.given(rule, facts) {
                Fact::Known((settings, experiment)) => {
                    let by = By::Rule { index, name: rule.name.as_deref() };
                    return Decision { settings, by, experiment, is_final };
                }
                Fact::Unknown => is_final = false,
                Fact::Absent => {}
            }
        }
        Decision { settings: &self.default, by: By::Default, experiment: None, is_final }
    }

    /// What `rule` gives; nothing if it does not hold.
    pub(crate) fn given<'p>(&'p self, rule: &'p Rule, facts: &Facts<'_>) -> Fact<Given<'p>> {
        let holds = Verdict::all(rule.conditions.iter().map(|it| it.test.verdict(facts)));
        if holds == Verdict::No {
            return Fact::Absent;
        }
        let given = match &rule.gives {
            Gives::Settings(settings) => Fact::Known((settings, None)),
            Gives::Experiment(index) => match self.experiments.get(*index) {
                Some(it) => it.assignment(facts).map(|(arm, settings)| (settings, Some(arm))),
                None => Fact::Absent,
            },
        };
        match given {
            Fact::Known(_) if holds == Verdict::Unknown => Fact::Unknown,
            given => given,
        }
    }

    /// What the policy is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A number that differs for texts that differ, for records.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// When a server asks for the last time.
    pub fn when(&self) -> When {
        self.when
    }

    /// How many rules there are.
    pub fn rules(&self) -> usize {
        self.rules.len()
    }

    /// Whether any rule asks where a client is, which needs a database.
    pub fn asks_origin(&self) -> bool {
        let mut conditions = self.rules.iter().flat_map(|rule| &rule.conditions);
        conditions.any(|condition| matches!(condition.test, Test::Asn(_) | Test::Country(_)))
    }

    /// What there is, in a line: `3 rules, 1 experiment of 2 arms`.
    pub fn summary(&self) -> String {
        let count = |count: usize, what: &str| {
            format!("{count} {what}{}", if count == 1 { "" } else { "s" })
        };
        let arms: usize = self.experiments.iter().map(|it| it.arms.len()).sum();
        let (experiments, arms) = (count(self.experiments.len(), "experiment"), count(arms, "arm"));
        let mut parts = vec![count(self.rules.len(), "rule")];
        if !self.experiments.is_empty() {
            parts.push(format!(", {experiments} of {arms}"));
        }
        parts.concat()
    }

    /// All that connections can be given: the default, then what rules give, then arms.
    pub fn settings(&self) -> impl Iterator<Item = &Settings> {
        let rules = self.rules.iter().filter_map(|rule| match &rule.gives {
            Gives::Settings(settings) => Some(settings),
            Gives::Experiment(_) => None,
        });
        let arms = self.experiments.iter().flat_map(|it| &it.arms).map(|arm| &arm.settings);
        std::iter::once(&self.default).chain(rules).chain(arms)
    }

    /// Every experiment's name with that of each of its arms.
    pub fn arms(&self) -> impl Iterator<Item = (&str, &str)> {
        let experiments = self.experiments.iter();
        experiments.flat_map(|it| it.arms.iter().map(|arm| (&*it.name, &*arm.name)))
    }
}

/// What a rule gives, and the arm that it gives it as.
pub(crate) type Given<'p> = (&'p Settings, Option<Assignment<'p>>);

/// A fingerprint of `text`.
pub(crate) fn fingerprint(text: &str) -> u64 {
    let mut hasher = SipHasher24::new_with_key(&[0; 16]);
    hasher.write(text.as_bytes());
    hasher.finish()
}
