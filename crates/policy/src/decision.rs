//! What was decided, and by what.

use std::fmt;

use uncork_units::Probability;

use crate::Settings;

/// What a connection is given, as far as its facts tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision<'p> {
    /// What it is given.
    pub settings: &'p Settings,
    /// What decided.
    pub by: By<'p>,
    /// The arm, if what decided is an experiment.
    pub experiment: Option<Assignment<'p>>,
    /// Whether no further knowledge of this connection and request can change it.
    pub is_final: bool,
}

/// What decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By<'p> {
    /// No rule: what the policy gives everybody else.
    Default,
    /// A rule.
    Rule {
        /// Its index, from 0.
        index: usize,
        /// Its name, if it has one.
        name: Option<&'p str>,
    },
}

/// The arm of a unit in an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assignment<'p> {
    /// The experiment's name.
    pub experiment: &'p str,
    /// The arm's name.
    pub arm: &'p str,
    /// The keyed hash of the unit, which records may have in its place.
    pub unit: u64,
    /// Which of the [`SLOTS`](crate::SLOTS) the unit is in, which decided the arm.
    pub slot: u16,
    /// Which of the [`BUCKETS`](crate::BUCKETS) the unit is in, which says nothing of the arm.
    pub bucket: u8,
    /// The share of all units that this arm is given to.
    pub propensity: Probability,
}

impl fmt::Display for By<'_> {
    /// Rules are counted from 1.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("the default"),
            Self::Rule { index, name: None } => write!(f, "rule {}", index + 1),
            Self::Rule { index, name: Some(name) } => write!(f, "rule {} `{name}`", index + 1),
        }
    }
}

impl fmt::Display for Assignment<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { experiment, arm, slot, bucket, propensity, .. } = self;
        write!(
            f,
            "arm `{arm}` of `{experiment}`, slot {slot}, bucket {bucket}, given to {propensity}"
        )
    }
}

impl fmt::Display for Decision<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let certain = if self.is_final { "finally" } else { "for now" };
        write!(f, "{} decides {certain}: {}", self.by, self.settings)?;
        match &self.experiment {
            Some(assignment) => write!(f, "; {assignment}"),
            None => Ok(()),
        }
    }
}
