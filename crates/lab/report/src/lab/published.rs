//! Comparison with published results.

use serde::{Deserialize, Serialize};

/// A comparison with a published result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Published {
    /// Compared quantity.
    pub what: String,
    /// Published value.
    pub published: String,
    /// Measured value.
    pub measured: String,
    /// How both compare; null if the publication does not say enough to judge.
    pub judgement: Option<Judgement>,
    /// Source.
    pub source: String,
    /// Reason of a difference, or a remark; may be empty.
    pub note: String,
}

/// How a measurement compares with a published result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Judgement {
    /// Result of the comparison.
    pub verdict: Verdict,
    /// Range in which the measurement agrees: `4.05 s to 4.95 s`.
    pub range: String,
    /// Where the range comes from.
    pub range_from: String,
}

/// Result of a comparison with a published range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The whole interval is in the range.
    Agrees,
    /// The whole interval is outside the range.
    Differs,
    /// The interval is partly in the range, or there is none.
    Open,
}

impl Verdict {
    /// Its sign and word in tables.
    pub fn shown(self) -> &'static str {
        match self {
            Self::Agrees => "✓ agrees",
            Self::Differs => "✗ differs",
            Self::Open => "? open",
        }
    }
}
