//! Policies for many hosts: signed bundles in a store, a staged rollout, and an agent on each host.
//!
//! The store is a directory or an object store ([`uncork_store`]); no server is ours. A publisher writes bundles ([`Bundle`]) and one
//! signed document that names the version of each host ([`Rollout`]). An [`Agent`] reads both, verifies them before it parses
//! them, activates whole versions ([`Disk`]), and leaves a [`Report`] in the store. Times are arguments.
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

mod agent;
mod agent_metrics;
mod apply;
mod bundle;
mod disk;
mod gate;
mod host_name;
mod key;
mod lease;
mod memory;
mod metrics_text;
mod planned;
mod publish;
mod report;
mod rollback;
mod rollout;
mod sealed;
mod stage;
mod status;

pub use agent::{Agent, AgentSpec};
pub use agent_metrics::AgentMetrics;
pub use apply::{Apply, Commands};
#[cfg(fuzzing)]
pub use bundle::read_body;
pub use bundle::{Bundle, BundleError, MAX_BUNDLE, Manifest, POLICY, PackedFile};
pub use disk::{Disk, Steps};
pub use gate::{Gate, GateError};
pub use host_name::{HostName, HostNameError};
pub use key::{KeyError, SigningKey, public_key_pem, read_public_key};
pub use lease::Lease;
pub use memory::{Accepted, DecidingClock, Memory, Refusal};
pub use metrics_text::{METRICS_TEXT_TYPE, MetricsText};
pub use planned::Planned;
pub use publish::{Fleet, Next, PublishError, Tolerance};
pub use report::{ActiveVersion, HostState, Report};
pub use rollout::{Origin, Progress, Rollout, Target};
pub use sealed::{Kind, SealError, SignedBody};
pub use stage::{Stage, StageError};
pub use status::{FleetStatus, HostStatus, first_hosts};
