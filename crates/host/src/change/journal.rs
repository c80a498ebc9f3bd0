//! What was on the host before its changes, for as long as they last.

use serde::{Deserialize, Serialize};

use super::knob::{Knob, Value};

/// Schema of a [`Journal`].
pub const JOURNAL_SCHEMA: &str = "uncork.host-journal/1";

/// What the commands know from each other. It is stored before the first change of a host, and after the last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Journal {
    /// [`JOURNAL_SCHEMA`].
    pub schema: String,
    /// The boot and the network namespace that it belongs to.
    pub boot: String,
    /// The applied state.
    pub applied: Option<Applied>,
    /// Changes under way, or waiting for `confirm`.
    pub open: Option<Open>,
    /// How the last changes ended that did not last.
    pub ended: Option<Ended>,
}

/// A applied state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Applied {
    /// The file that it came from.
    pub file: String,
    /// Its text.
    pub desired: String,
    /// When it was applied, in seconds of Unix time.
    pub since_unix_s: u64,
    /// Whether it survives a reboot.
    pub persist: bool,
    /// Every setting that differs from the state without it.
    pub changes: Vec<Change>,
}

/// A setting and both its values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// The setting.
    pub knob: Knob,
    /// Its value before.
    pub before: Value,
    /// Its value after.
    pub after: Value,
}

/// Changes that can still be undone as one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Open {
    /// What they do.
    pub purpose: Purpose,
    /// The changes, in their order.
    pub steps: Vec<Change>,
    /// Changes of files, which `confirm` makes.
    pub at_confirm: Vec<Change>,
    /// What is in force after them.
    pub next: Option<Applied>,
    /// Whether all `steps` are done, so that only `confirm` is missing.
    pub complete: bool,
    /// When they are undone without `confirm`, in seconds since boot (`CLOCK_BOOTTIME`).
    pub deadline_boot_s: Option<u64>,
}

/// What changes are made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// A desired state.
    Apply,
    /// The state before all changes.
    Revert,
}

/// Changes that did not last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ended {
    /// Why.
    pub why: Why,
    /// When, in seconds of Unix time.
    pub at_unix_s: u64,
    /// Settings that were left as they were found, because somebody else had changed them.
    pub left: Vec<Left>,
}

/// Why changes did not last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// `confirm` did not come in time.
    Expired,
    /// The process that made them died.
    Interrupted,
    /// One of them failed.
    Failed,
    /// `revert`.
    Reverted,
    /// The host was rebooted, or its namespace made anew.
    Rebooted,
}

/// A setting that somebody else has changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Left {
    /// The setting.
    pub knob: Knob,
    /// The value that it was given.
    pub given: Value,
    /// The value that it has.
    pub found: Value,
}

impl Journal {
    /// A journal of a host without changes.
    pub fn new(boot: &str) -> Self {
        Self {
            schema: JOURNAL_SCHEMA.to_owned(),
            boot: boot.to_owned(),
            applied: None,
            open: None,
            ended: None,
        }
    }

    /// The changes of the applied state.
    pub(crate) fn changes(&self) -> &[Change] {
        self.applied.as_ref().map_or(&[], |applied| &applied.changes)
    }
}

impl Open {
    /// The changes in the order that undoes them.
    pub(crate) fn undoing(&self) -> Vec<Change> {
        let mut steps = self.steps.clone();
        match self.purpose {
            Purpose::Apply => steps.sort_by_key(|step| step.knob.revert_rank(&step.before)),
            Purpose::Revert => steps.sort_by_key(|step| step.knob.apply_rank(&step.before)),
        }
        steps
    }
}
