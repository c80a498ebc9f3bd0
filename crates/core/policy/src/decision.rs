//! Decisions, and the rules they come from.

use std::borrow::Cow;
use std::fmt;

use serde::{Serialize, Serializer};
use uncork_units::Probability;

use crate::Settings;

/// The settings of a connection, as far as its known facts determine them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision<'p> {
    /// The settings.
    pub settings: &'p Settings,
    /// What decided: a rule or the default.
    pub by: By<'p>,
    /// The arm, if the rule has an experiment.
    pub experiment: Option<Assignment<'p>>,
    /// Whether no further fact about this connection and request can change it.
    pub is_final: bool,
}

/// The origin of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By<'p> {
    /// No rule matched: the policy's default.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Assignment<'p> {
    /// The experiment's name.
    pub experiment: &'p str,
    /// The arm's name.
    pub arm: &'p str,
    /// The keyed hash of the unit, for records instead of the unit itself.
    pub unit: u64,
    /// The slot of the unit, below 10,000; it determines the arm.
    pub slot: u16,
    /// The bucket of the unit, below 100, independent of the arm.
    pub bucket: u8,
    /// The share of all units in this arm.
    #[cfg_attr(test, schemars(with = "f64"))]
    #[serde(serialize_with = "as_number")]
    pub propensity: Probability,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn as_number<S: Serializer>(share: &Probability, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(share.as_f64())
}

impl By<'_> {
    /// The rule as records name it: by its name, if it has one.
    pub fn rule_name(&self) -> Cow<'_, str> {
        match self {
            Self::Default => "default".into(),
            Self::Rule { name: Some(name), .. } => (*name).into(),
            Self::Rule { index, name: None } => format!("rule {}", index + 1).into(),
        }
    }
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
