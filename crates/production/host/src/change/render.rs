//! Plans, reports and states as text.

use std::fmt;

use serde::Serialize;
use uncork_terminal::{Column, Style, Table};

use super::agent::Report;
use super::commands::commands;
use super::host::Watchdog;
use super::journal::{Change, Journal, Rollback, SkippedSetting, UndoReason};
use super::plan::Plan;
use super::status::{State, Status};

/// Schema of a [`PlanDocument`].
pub const PLAN_SCHEMA: &str = "uncork.host-plan/1";

/// The difference between a host and a desired state.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PlanDocument {
    /// `uncork.host-plan/1`.
    #[cfg_attr(test, schemars(extend("const" = PLAN_SCHEMA)))]
    pub schema: &'static str,
    /// The file of the desired state.
    pub file: String,
    /// The changes, in the order in which they are made.
    pub changes: Vec<PlannedChange>,
    /// What happens to live connections.
    pub warnings: Vec<String>,
}

/// A change of a plan.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PlannedChange {
    /// Its name.
    pub setting: String,
    /// Its current value.
    pub now: String,
    /// Its value after the change.
    pub then: String,
    /// Commands of a shell that are equivalent to the change.
    pub commands: Vec<String>,
}

impl Plan {
    /// The plan as a document; `file` is the file of the desired state.
    pub fn document(&self, file: &str) -> PlanDocument {
        let planned = |step: &Change| PlannedChange {
            setting: step.setting.to_string(),
            now: step.before.to_string(),
            then: step.after.to_string(),
            commands: commands(step),
        };
        PlanDocument {
            schema: PLAN_SCHEMA,
            file: file.to_owned(),
            changes: self.steps.iter().map(planned).collect(),
            warnings: self.warnings.clone(),
        }
    }
}

impl PlanDocument {
    /// The plan as text: the changes, and equivalent commands.
    pub fn text(&self) -> String {
        if self.changes.is_empty() {
            let warnings = warnings(&self.warnings);
            return format!("This host matches {}. Nothing to do.\n{warnings}", self.file);
        }
        let rows =
            self.changes.iter().map(|it| [&it.setting, &it.now, &it.then].map(String::clone));
        let mut text = table(["setting", "now", "then"], rows);
        text += &warnings(&self.warnings);
        text += "\nThe same by hand, in this order:\n\n";
        for command in self.changes.iter().flat_map(|change| &change.commands) {
            text += command;
            text += "\n";
        }
        text
    }
}

impl Report {
    /// The report as text; `nothing` is the text if nothing was done.
    pub fn text(&self, nothing: &str) -> String {
        let mut text =
            self.undone.as_ref().map_or_else(String::new, |undone| format!("{undone}\n"));
        text.extend(
            self.refused.as_ref().map(|reason| {
                format!("without the policy of [routes], which is refused: {reason}\n")
            }),
        );
        if self.steps.is_empty() && self.left.is_empty() && self.undone.is_none() {
            text += nothing;
            text += "\n";
        }
        if !self.steps.is_empty() {
            text += &table(["setting", "before", "now"], self.steps.iter().map(Change::row));
        }
        text.extend(self.left.iter().map(|left| format!("left: {left}\n")));
        text += &warnings(&self.warnings);
        if let Some(remaining) = self.remaining_s {
            let span = span(remaining);
            text.extend([format!(
                "All changes will be rolled back in {span} unless you run `uncork host confirm`.\n"
            )]);
        }
        text
    }
}

impl Journal {
    /// The changes that a journal knows, as text: the values before them are what is lost without it.
    pub fn forgotten(&self) -> String {
        let changes = self.open.iter().flat_map(|open| &open.steps).chain(self.changes());
        let mut rows = changes.map(Change::row).peekable();
        if rows.peek().is_none() {
            return String::new();
        }
        table(["setting", "before", "applied"], rows)
    }
}

impl Status {
    /// The status as text; `unix_s` is the current time, `holder` the process that changes or tests this host.
    pub fn text(&self, unix_s: u64, holder: Option<u32>) -> String {
        let file = self.file.as_deref().unwrap_or("nothing");
        let ago = |then: u64| format!("{} ago", span(unix_s.saturating_sub(then)));
        let since = self.since_unix_s.map_or_else(String::new, ago);
        let lasts = if self.persist { "survives a reboot" } else { "lasts until the next reboot" };
        let mut text = match self.state {
            State::Nothing => "Nothing is applied.\n".to_owned(),
            State::Applied => format!("{file} was applied {since}; it {lasts}.\n"),
            State::Waiting => {
                let remaining = span(self.remaining_s.unwrap_or(0));
                format!("{file} was applied {since}; it will be rolled back in {remaining} unless you run `uncork host confirm`.\n")
            }
            State::Unfinished => holder.map_or_else(
                || "Changes are in progress. If no uncork command is running, it died: `uncork host revert` undoes them.\n".to_owned(),
                |process| format!("Process {process} is changing or testing settings.\n"),
            ),
            State::Rebooted if self.persist => format!(
                "{file} was applied {since}, before the last reboot; `uncork host apply --boot` completes it.\n"
            ),
            State::Rebooted => format!("{file} was applied {since}; the last reboot undid it.\n"),
        };
        if self.guard == Some(Watchdog::Dead) {
            text += "The watchdog that would roll it back is dead: without another one, nothing is rolled back.\n";
        }
        if let Some(ended) = &self.ended {
            let (then, why) = (ago(ended.at_unix_s), ended.why);
            text.extend([format!("The last changes were rolled back {then}: {why}.\n")]);
            text.extend(ended.left.iter().map(|left| format!("left: {left}\n")));
        }
        if !self.settings.is_empty() {
            let rows = self.settings.iter().map(|it| {
                let now = if it.changed { &it.found } else { "as applied" };
                [&it.setting, &it.before, &it.applied, now].map(str::to_owned)
            });
            text += "\n";
            text += &table(["setting", "before", "applied", "now"], rows);
        }
        text
    }
}

impl fmt::Display for UndoReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Expired => "not confirmed in time",
            Self::Interrupted => "the command that made them died",
            Self::Failed => "one of them failed",
            Self::Reverted => "`uncork host revert` was run",
            Self::Rebooted => "the host was rebooted, or its network namespace recreated",
        })
    }
}

impl fmt::Display for Rollback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Earlier changes were rolled back: {}.", self.why)?;
        self.left.iter().try_for_each(|left| write!(f, "\nleft: {left}"))
    }
}

impl fmt::Display for SkippedSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { setting, given, found } = self;
        write!(f, "{setting} is {found}; uncork set {given}, and something else changed it since")
    }
}

fn warnings(warnings: &[String]) -> String {
    warnings.iter().flat_map(|warning| ["warning: ", warning, "\n"]).collect()
}

/// A time in words: `90 s`, `2 min`.
pub fn span(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

impl Change {
    /// The setting, and its values before and after.
    fn row(&self) -> [String; 3] {
        [self.setting.to_string(), self.before.to_string(), self.after.to_string()]
    }
}

/// Left-aligned columns.
fn table<const N: usize>(names: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    Table::new(names.map(Column::left), rows).render(Style::Plain)
}
