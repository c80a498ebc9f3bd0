//! What is applied to a host, and what has changed since.

use serde::Serialize;

use super::host::{Host, HostError};
use super::journal::{Change, Ended, Journal, Left};
use super::knob::{Knob, Value};

/// Schema of a [`Status`].
pub const STATUS_SCHEMA: &str = "uncork.host-status/1";

/// What is applied to a host.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// [`STATUS_SCHEMA`].
    pub schema: &'static str,
    /// The state.
    pub state: State,
    /// The file of the desired state.
    pub file: Option<String>,
    /// When it was applied, in seconds of Unix time.
    pub since_unix_s: Option<u64>,
    /// Whether it survives a reboot.
    pub persist: bool,
    /// Seconds until it is undone unless it is confirmed.
    pub remaining_s: Option<u64>,
    /// The settings that it changed.
    pub settings: Vec<Setting>,
    /// How the last changes ended that did not last.
    pub ended: Option<LastEnd>,
}

/// The state of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// No desired state is in force.
    Nothing,
    /// A desired state is in force.
    Applied,
    /// A desired state waits for `confirm`.
    Waiting,
    /// Changes are being made, or the process that made them is dead.
    Unfinished,
    /// The host was rebooted since, or its namespace made anew.
    Rebooted,
}

/// A setting that a desired state changed.
#[derive(Clone, Debug, Serialize)]
pub struct Setting {
    /// Its name.
    pub setting: String,
    /// Its value before.
    pub before: String,
    /// Its value by the desired state.
    pub applied: String,
    /// Its value now.
    pub found: String,
    /// Whether somebody else has changed it since.
    pub changed: bool,
}

/// How changes ended that did not last.
#[derive(Clone, Debug, Serialize)]
pub struct LastEnd {
    /// Why.
    pub why: super::journal::Why,
    /// When, in seconds of Unix time.
    pub at_unix_s: u64,
    /// Settings that were left as somebody else had set them.
    pub left: Vec<String>,
}

/// Looks at a host and its journal. Changes nothing.
///
/// # Errors
///
/// The host cannot be read.
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
    let settings =
        changes.into_iter().map(|change| setting(host, change)).collect::<Result<_, _>>()?;
    Ok(Status {
        schema: STATUS_SCHEMA,
        state,
        since_unix_s: desired.as_ref().map(|desired| desired.since_unix_s),
        persist: desired.as_ref().is_some_and(|desired| desired.persist),
        file: desired.map(|desired| desired.file),
        remaining_s,
        settings,
        ended: ended.map(last_end),
    })
}

fn setting(host: &mut impl Host, change: Change) -> Result<Setting, HostError> {
    let Change { knob, before, after } = change;
    let found = host.read(&knob)?;
    Ok(Setting {
        setting: knob.to_string(),
        changed: !after.holds(&found),
        before: before.to_string(),
        applied: after.to_string(),
        found: match (&knob, &found) {
            (Knob::File { .. }, Value::Text { .. }) if !after.holds(&found) => {
                "another text".to_owned()
            }
            _ => found.to_string(),
        },
    })
}

fn last_end(Ended { why, at_unix_s, left }: Ended) -> LastEnd {
    LastEnd { why, at_unix_s, left: left.iter().map(Left::to_string).collect() }
}

impl Status {
    /// Whether somebody should do something: changes are unfinished, or somebody else has changed a setting.
    pub fn needs_action(&self) -> bool {
        matches!(self.state, State::Unfinished | State::Rebooted)
            || self.settings.iter().any(|setting| setting.changed)
    }
}
