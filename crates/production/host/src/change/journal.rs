//! The journal of changes: the values before them, kept until the changes are undone.

use serde::{Deserialize, Serialize};
use uncork_policy::Release;

use super::setting::{SettingKey, Value};

/// Schema of a [`Journal`].
pub const JOURNAL_SCHEMA: &str = "uncork.host-journal/1";

/// The state of a host before its changes, which commands share: `host.json` in `--state-dir`. It is stored before the first
/// change, and after the last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Journal {
    /// `uncork.host-journal/1`.
    #[cfg_attr(test, schemars(extend("const" = JOURNAL_SCHEMA)))]
    pub schema: String,
    /// The boot and the network namespace that the journal belongs to.
    pub boot: String,
    /// The applied state.
    pub applied: Option<Applied>,
    /// Changes under way, or waiting for `confirm`.
    pub open: Option<Open>,
    /// How the last undone changes ended.
    pub ended: Option<Rollback>,
}

/// A desired state that was applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
    /// When the table of its policy expires, in seconds of Unix time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_unix_s: Option<i64>,
    /// Which of its signer's policies its policy is, if it must be signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<Release>,
    /// Every setting that the desired state changed.
    pub changes: Vec<Change>,
}

/// A setting with its value before and after.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// The setting.
    #[serde(rename = "knob")]
    pub setting: SettingKey,
    /// Its value before.
    pub before: Value,
    /// Its value after.
    pub after: Value,
}

/// Changes that can still be undone as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Open {
    /// The purpose of the changes.
    pub purpose: Purpose,
    /// The changes, in their order.
    pub steps: Vec<Change>,
    /// Changes of files, made by `confirm`.
    pub at_confirm: Vec<Change>,
    /// The applied state after the changes.
    pub next: Option<Applied>,
    /// Whether all `steps` are done, so that only `confirm` is missing.
    pub complete: bool,
    /// When the changes are undone unless confirmed, in seconds since boot (`CLOCK_BOOTTIME`).
    pub deadline_boot_s: Option<u64>,
}

/// The purpose of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// To apply a desired state.
    Apply,
    /// To restore the state before all changes.
    Revert,
}

/// Changes that were undone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Rollback {
    /// The reason.
    pub why: UndoReason,
    /// The time, in seconds of Unix time.
    pub at_unix_s: u64,
    /// Settings that were not touched because another program had changed them.
    pub left: Vec<SkippedSetting>,
}

/// Why changes were rolled back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum UndoReason {
    /// `confirm` was not called in time.
    Expired,
    /// The process that made them died.
    Interrupted,
    /// One of them failed.
    Failed,
    /// `revert`.
    Reverted,
    /// The host was rebooted, or its namespace recreated.
    Rebooted,
}

/// A setting that another program has changed, and that was not touched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SkippedSetting {
    /// The setting.
    #[serde(rename = "knob")]
    pub setting: SettingKey,
    /// The value that the desired state set.
    pub given: Value,
    /// The current value.
    pub found: Value,
}

impl Journal {
    /// The journal of a host without changes.
    pub fn new(boot: &str) -> Self {
        Self {
            schema: JOURNAL_SCHEMA.to_owned(),
            boot: boot.to_owned(),
            applied: None,
            open: None,
            ended: None,
        }
    }

    /// Whether it names only settings that uncork changes. What else it names somebody else has written there.
    ///
    /// # Errors
    ///
    /// A setting that it does not change.
    pub(crate) fn check(&self) -> Result<(), String> {
        let applied = self.applied.iter().chain(self.open.iter().filter_map(|it| it.next.as_ref()));
        let open = self.open.iter().flat_map(|open| open.steps.iter().chain(&open.at_confirm));
        let changes = applied.flat_map(|applied| &applied.changes).chain(open);
        match changes.map(|change| &change.setting).find(|setting| !setting.is_known()) {
            Some(setting) => Err(format!("it names {setting}, which uncork never changes")),
            None => Ok(()),
        }
    }

    /// The changes of the applied state.
    pub(crate) fn changes(&self) -> &[Change] {
        self.applied.as_ref().map_or(&[], |applied| &applied.changes)
    }
}

impl Open {
    /// The open changes in the order in which they are undone.
    pub(crate) fn undoing(&self) -> Vec<Change> {
        let mut steps = self.steps.clone();
        match self.purpose {
            Purpose::Apply => steps.sort_by_key(|step| step.setting.revert_rank(&step.before)),
            Purpose::Revert => steps.sort_by_key(|step| step.setting.apply_rank(&step.before)),
        }
        steps
    }
}
