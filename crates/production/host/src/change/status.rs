//! The desired state applied to a host, and settings that have changed since.

use serde::Serialize;

use super::desired_state::DesiredState;
use super::host::{Host, HostError, Watchdog};
use super::journal::{Applied, Change, Journal, Rollback, SkippedSetting};
use super::setting::{SettingKey, Value};

/// Schema of a [`Status`].
pub const STATUS_SCHEMA: &str = "uncork.host-status/1";

/// The status of a host.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Status {
    /// `uncork.host-status/1`.
    #[cfg_attr(test, schemars(extend("const" = STATUS_SCHEMA)))]
    pub schema: &'static str,
    /// The state.
    pub state: State,
    /// The file of the desired state.
    pub file: Option<String>,
    /// When it was applied, in seconds of Unix time.
    pub since_unix_s: Option<u64>,
    /// Whether it survives a reboot.
    pub persist: bool,
    /// Seconds until it is rolled back unless it is confirmed.
    pub remaining_s: Option<u64>,
    /// Whether the watchdog runs, which rolls back open changes; null if none are open.
    pub guard: Option<Watchdog>,
    /// The policy that its routes follow; null if it has none.
    pub policy: Option<PolicyOfRoutes>,
    /// The settings that it changed.
    pub settings: Vec<Setting>,
    /// The last rollback; null if there was none.
    pub ended: Option<LastUndo>,
}

/// The state of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// No desired state is active.
    Nothing,
    /// A desired state is active.
    Applied,
    /// A desired state waits for `confirm`.
    Waiting,
    /// Changes are in progress, or the process that made them died.
    Unfinished,
    /// The host was rebooted since, or its namespace recreated.
    Rebooted,
}

/// The policy of a desired state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PolicyOfRoutes {
    /// Its file.
    pub file: String,
    /// Number of routes that the desired state changed.
    pub routes: usize,
    /// When its table expires, in seconds of Unix time; null if it has none.
    pub expires_unix_s: Option<i64>,
}

/// A setting that a desired state changed.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Setting {
    /// Its name.
    pub setting: String,
    /// Its value before.
    pub before: String,
    /// Its value in the desired state.
    pub applied: String,
    /// Its current value.
    pub found: String,
    /// Whether another program has changed it since.
    pub changed: bool,
}

/// A rollback.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LastUndo {
    /// The reason.
    pub why: super::journal::UndoReason,
    /// The time, in seconds of Unix time.
    pub at_unix_s: u64,
    /// Settings that were left, because another program had changed them.
    pub left: Vec<String>,
}

/// Compares a host with its journal. Changes nothing.
///
/// # Errors
///
/// If the host cannot be read.
pub fn status(host: &mut impl Host) -> Result<Status, HostError> {
    let now = host.now();
    let journal = host.load()?.unwrap_or_else(|| Journal::new(&now.boot));
    let Journal { boot, applied, open, ended, .. } = journal;
    let mut state = State::Nothing;
    let (mut desired, mut changes, mut remaining_s) = (None, Vec::new(), None);
    if let Some(open) = open {
        state = State::Unfinished;
        if open.complete {
            state = State::Waiting;
            let deadline = open.deadline_boot_s;
            remaining_s = deadline.map(|deadline| deadline.saturating_sub(now.boot_s));
        }
        changes = open.steps;
        desired = open.next;
    } else if let Some(applied) = applied {
        state = State::Applied;
        changes.clone_from(&applied.changes);
        desired = Some(applied);
    }
    if boot != now.boot && state != State::Nothing {
        state = State::Rebooted;
        remaining_s = None;
    }
    let is_open = matches!(state, State::Waiting | State::Unfinished);
    let policy = desired.as_ref().and_then(|desired| policy(desired, &changes));
    let found = host.read_all(&changes.iter().map(|change| &change.setting).collect::<Vec<_>>())?;
    let settings = changes.into_iter().zip(found).map(setting).collect();
    Ok(Status {
        schema: STATUS_SCHEMA,
        state,
        since_unix_s: desired.as_ref().map(|desired| desired.since_unix_s),
        persist: desired.as_ref().is_some_and(|desired| desired.persist),
        file: desired.map(|desired| desired.file),
        remaining_s,
        guard: is_open.then(|| host.guard()),
        policy,
        settings,
        ended: ended.map(last_end),
    })
}

fn policy(desired: &Applied, changes: &[Change]) -> Option<PolicyOfRoutes> {
    let state = DesiredState::parse(&desired.desired).ok()?;
    let is_route = |change: &&Change| matches!(change.setting, SettingKey::Route { .. });
    Some(PolicyOfRoutes {
        file: state.policy?.file.display().to_string(),
        routes: changes.iter().filter(is_route).count(),
        expires_unix_s: desired.expires_unix_s,
    })
}

fn setting((change, found): (Change, Value)) -> Setting {
    let Change { setting, before, after } = change;
    Setting {
        setting: setting.to_string(),
        changed: !after.holds(&found),
        before: before.to_string(),
        applied: after.to_string(),
        found: match (&setting, &found) {
            (SettingKey::File { .. }, Value::Text { .. }) if !after.holds(&found) => {
                "another text".to_owned()
            }
            _ => found.to_string(),
        },
    }
}

fn last_end(Rollback { why, at_unix_s, left }: Rollback) -> LastUndo {
    LastUndo { why, at_unix_s, left: left.iter().map(SkippedSetting::to_string).collect() }
}

impl Status {
    /// Whether an operator needs to act: changes are unfinished, no process lives that undoes them, or another program has
    /// changed a setting. While a process, the `holder`, changes or tests this host, unfinished changes are its own.
    pub fn needs_action(&self, holder: Option<u32>) -> bool {
        let is_changing = self.state == State::Unfinished && holder.is_some();
        let is_incomplete = matches!(self.state, State::Unfinished | State::Rebooted)
            || self.settings.iter().any(|setting| setting.changed);
        self.guard == Some(Watchdog::Dead) || (is_incomplete && !is_changing)
    }
}
