//! What a policy of `uncork steer` gave a connection.

use serde::{Deserialize, Serialize};
use uncork_diag::Name;
use uncork_flow::FlowRecord;

/// What policies of `uncork steer` know of connections, by the cookies of their sockets.
pub trait Policies {
    /// What a policy gave an open connection.
    fn given(&mut self, cookie: u64) -> Option<PolicyChoice>;
    /// Adds to the record of a connection that has ended.
    fn complete(&mut self, cookie: u64, record: &mut FlowRecord);
}

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
