//! Changes a host to the state described in a TOML file, and back.
//!
//! [`DesiredState`] is the file. [`plan()`] compares it with the host, setting by setting; it reads
//! the host but changes nothing. [`apply`], [`confirm`] and [`revert`] change the host through
//! [`Host`], either completely or not at all: a [`Journal`] on disk holds the previous values, and
//! [`recover`] uses it after a process has died. [`HostTrial`] changes a host for a test,
//! from state to state. [`LiveHost`] is the running kernel.

mod agent;
mod commands;
mod desired_state;
mod files;
mod host;
mod journal;
mod keys;
mod linux;
mod plan;
mod policy;
mod render;
mod route;
mod setting;
mod status;
mod trial;

pub use agent::{ChangeError, Report, Source, apply, apply_again, confirm, recover, revert};
pub use desired_state::{DesiredRoute, DesiredState, Prefix, RoutesPolicy};
pub use host::{Host, HostContext, HostError, Now, Watchdog};
pub use journal::{
    Applied, Change, JOURNAL_SCHEMA, Journal, Open, Purpose, Rollback, SkippedSetting, UndoReason,
};
pub use linux::{LiveHost, OtherJournal, StateDirectory, watch};
pub use plan::{Plan, PlanError, plan};
pub use render::{PLAN_SCHEMA, PlanDocument, PlannedChange, span};
pub use setting::{Installed, Qdisc, Route, SettingKey, Value};
pub use status::{LastUndo, PolicyOfRoutes, STATUS_SCHEMA, Setting, State, Status, status};
pub use trial::HostTrial;
