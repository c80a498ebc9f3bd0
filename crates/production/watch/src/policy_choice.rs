//! What a policy of `uncork steer` gave a connection.

use serde::{Deserialize, Serialize};
use uncork_diag::Name;

/// What a policy gave a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PolicyChoice {
    /// The rule that decided, or `default`.
    #[cfg_attr(test, schemars(with = "String"))]
    pub rule: ShortName,
    /// `EXPERIMENT/ARM`; absent without an experiment, and of connections that were moved.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arm: Option<ShortName>,
}

/// A rule or an arm, cut to 47 bytes: samples are copied at each pass.
pub type ShortName = Name<47>;
