//! Policies and their decisions.

use std::hash::Hasher;

use siphasher::sip::SipHasher24;

use crate::condition::{Condition, Test};
use crate::experiment::Experiment;
use crate::table_use::TableUse;
use crate::{
    Assignment, By, Decision, Fact, Facts, PolicyError, Release, Settings, TableError, UnixTime,
    Verdict, read,
};

/// Chooses the controller of each connection.
#[derive(Clone, Debug)]
pub struct Policy {
    pub(crate) name: Box<str>,
    pub(crate) fingerprint: u64,
    pub(crate) when: When,
    pub(crate) default: Settings,
    pub(crate) experiments: Box<[Experiment]>,
    pub(crate) table: Option<TableUse>,
    pub(crate) rules: Box<[Rule]>,
    pub(crate) release: Option<Release>,
}

/// When a server last consults the policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum When {
    /// With a connection's first request; that decision is kept.
    #[default]
    Once,
    /// With each request of a connection.
    EachRequest,
}

/// A rule: conditions, and the action if all match.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) name: Option<Box<str>>,
    /// The line that it starts on, from 1.
    pub(crate) line: usize,
    pub(crate) conditions: Box<[Condition]>,
    pub(crate) action: Action,
}

/// The action of a rule.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    Settings(Settings),
    /// The settings of the unit's arm, by the experiment's index. For units outside the experiment, the next
    /// rule applies.
    Experiment(usize),
    /// The settings of the client's entry in a section of the table, by the section's index. For clients
    /// without an entry, the next rule applies.
    Table(usize),
}

impl Policy {
    /// Reads the policy `name` from `text` (`docs/reference/policy.md`).
    ///
    /// # Errors
    ///
    /// The first error, with its place and a remedy.
    pub fn parse(name: &str, text: &str) -> Result<Self, PolicyError> {
        read::policy(name, text).map_err(|error| error.within(text, &[]))
    }

    /// Decides by the first rule that matches, as far as the facts are known.
    pub fn decide(&self, facts: &Facts<'_>) -> Decision<'_> {
        let mut is_final = true;
        for (index, rule) in self.rules.iter().enumerate() {
            match self.evaluate(rule, facts) {
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

    /// Evaluates a rule; absent if it does not match.
    pub(crate) fn evaluate<'p>(&'p self, rule: &'p Rule, facts: &Facts<'_>) -> Fact<Outcome<'p>> {
        let holds = Verdict::all(rule.conditions.iter().map(|it| it.test.verdict(facts)));
        if holds == Verdict::No {
            return Fact::Absent;
        }
        let outcome = match &rule.action {
            Action::Settings(settings) => Fact::Known((settings, None)),
            Action::Experiment(index) => match self.experiments.get(*index) {
                Some(it) => it.assignment(facts).map(|(arm, settings)| (settings, Some(arm))),
                None => Fact::Absent,
            },
            Action::Table(section) => match &self.table {
                Some(it) => it.settings(*section, facts).map(|settings| (settings, None)),
                None => Fact::Absent,
            },
        };
        match outcome {
            Fact::Known(_) if holds == Verdict::Unknown => Fact::Unknown,
            outcome => outcome,
        }
    }

    /// The policy's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A hash of the policy's text, for records.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// Which of its signer's policies it is, if its files were signed ([`Self::from_files`]).
    pub fn release(&self) -> Option<&Release> {
        self.release.as_ref()
    }

    /// When a server last consults the policy.
    pub fn when(&self) -> When {
        self.when
    }

    /// The number of rules.
    pub fn rules(&self) -> usize {
        self.rules.len()
    }

    /// The file of the table of networks, as the policy names it, if a rule asks for one.
    pub fn table_file(&self) -> Option<&str> {
        self.table.as_ref().map(|it| &*it.file)
    }

    /// From when on no entry of the table counts, if one was taken.
    pub fn table_expires(&self) -> Option<UnixTime> {
        self.table.as_ref().and_then(TableUse::expires)
    }

    /// Whether a table of networks was taken, or none is needed.
    pub fn has_table(&self) -> bool {
        self.table.as_ref().is_none_or(|it| it.loaded.is_some())
    }

    /// Takes the table of networks from the bytes of its file. Before, and after it has expired, no rule that
    /// asks for the table matches. Each table has another fingerprint.
    ///
    /// # Errors
    ///
    /// If the bytes are no table, or not one for this policy. Then nothing of it is taken.
    pub fn take_table(&mut self, bytes: &[u8]) -> Result<(), TableError> {
        let Some(table) = &mut self.table else { return Ok(()) };
        let digest = table.take(bytes)?;
        let mut hasher = SipHasher24::new_with_key(&[0; 16]);
        hasher.write_u64(self.fingerprint);
        hasher.write(&digest);
        self.fingerprint = hasher.finish();
        Ok(())
    }

    /// Whether any rule tests the client's origin, which needs a database.
    pub fn asks_origin(&self) -> bool {
        let mut conditions = self.rules.iter().flat_map(|rule| &rule.conditions);
        conditions.any(|condition| matches!(condition.test, Test::Asn(_) | Test::Country(_)))
    }

    /// A one-line summary: `3 rules, 1 experiment of 2 arms`.
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
        if let Some(table) = &self.table {
            parts.push(format!(", {}", table.summary()));
        }
        parts.concat()
    }

    /// All possible settings: the default, then those of rules, of experiments' arms and of the table's.
    pub fn settings(&self) -> impl Iterator<Item = &Settings> {
        let rules = self.rules.iter().filter_map(|rule| match &rule.action {
            Action::Settings(settings) => Some(settings),
            Action::Experiment(_) | Action::Table(_) => None,
        });
        let arms = self.experiments.iter().flat_map(|it| &it.arms).map(|arm| &arm.settings);
        let table = self.table.iter().flat_map(|it| it.arms.iter().map(|(_, settings)| settings));
        std::iter::once(&self.default).chain(rules).chain(arms).chain(table)
    }

    /// All arms, as pairs of experiment and arm name.
    pub fn arms(&self) -> impl Iterator<Item = (&str, &str)> {
        let experiments = self.experiments.iter();
        experiments.flat_map(|it| it.arms.iter().map(|arm| (&*it.name, &*arm.name)))
    }
}

/// The settings of a rule, and the arm if they come from an experiment.
pub(crate) type Outcome<'p> = (&'p Settings, Option<Assignment<'p>>);

/// The hash of `text`.
pub(crate) fn fingerprint(text: &str) -> u64 {
    let mut hasher = SipHasher24::new_with_key(&[0; 16]);
    hasher.write(text.as_bytes());
    hasher.finish()
}
