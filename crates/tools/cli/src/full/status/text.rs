//! The document as text, in 80 columns.

use std::fmt::Write;

use uncork_host::change::{OtherJournal, State, Status, Watchdog, span};
use uncork_steer::CgroupDocument;

use super::document::StatusDocument;

/// The width of the names of the parts.
const NAMES: usize = 13;
const COLUMNS: usize = 80;
/// Settings that are shown.
const MAX_SETTINGS: usize = 6;

impl StatusDocument {
    /// A part for each kind of what is active, and what needs attention.
    pub(super) fn text(&self) -> String {
        let document = self;
        let ago = |then: Option<u64>| {
            let now = document.unix_s.max(0).unsigned_abs();
            then.map_or_else(
                || "at an unknown time".to_owned(),
                |then| span(now.saturating_sub(then)) + " ago",
            )
        };
        let is_past = |journal: &&OtherJournal| journal.this_boot == Some(false);
        let host = document.host.as_ref();
        let mut settings = host.map(|host| settings(host, &ago)).unwrap_or_default();
        settings.extend(
            document
                .changed_by
                .map(|process| format!("being changed or tested by process {process}")),
        );
        let here = document.journals.iter().filter(|journal| journal.this_boot == Some(true));
        settings.extend(
            here.map(|journal| format!("in another network namespace: {}", applied(journal, &ago))),
        );
        let past = document.journals.iter().filter(is_past).map(|journal| applied(journal, &ago));
        let own_past = host.filter(|host| host.state == State::Rebooted);
        let own_past =
            own_past.map(|host| file_text(host.file.as_deref(), &ago(host.since_unix_s)));
        let parts = [
            ("settings", settings),
            ("controllers", controllers(document)),
            (
                "steered",
                document.steer.cgroups.iter().map(|cgroup| steered(cgroup, document)).collect(),
            ),
            (
                "processes",
                document
                    .processes
                    .iter()
                    .map(|it| cut(&format!("{:<7} {}", it.number, it.command)))
                    .collect(),
            ),
            ("before boot", own_past.into_iter().chain(past).collect()),
        ];
        let mut text = String::new();
        for (name, lines) in parts {
            let lines = if lines.is_empty() { vec!["none".to_owned()] } else { lines };
            part(&mut text, name, &lines);
        }
        for (name, lines) in [("attention", &document.attention), ("not visible", &document.unseen)]
        {
            if !lines.is_empty() {
                part(&mut text, name, lines);
            }
        }
        text
    }
}

/// The lines next to the name, each broken between words.
fn part(text: &mut String, name: &str, lines: &[String]) {
    let mut name = name;
    for line in lines.iter().flat_map(|line| broken(line)) {
        text.push_str(format!("{name:NAMES$}{line}").trim_end());
        text.push('\n');
        name = "";
    }
}

/// What continues a line is indented.
fn broken(line: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in line.split(' ') {
        match lines.last_mut() {
            Some(last) if NAMES + last.chars().count() + 1 + word.chars().count() <= COLUMNS => {
                last.push(' ');
                last.push_str(word);
            }
            Some(_) => lines.push(format!("  {word}")),
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

/// One line; its end may be missing.
fn cut(line: &str) -> String {
    let max = COLUMNS - NAMES;
    if line.chars().count() <= max {
        return line.to_owned();
    }
    line.chars().take(max - 1).chain(['…']).collect()
}

fn file_text(file: Option<&str>, ago: &str) -> String {
    format!("{}, applied {ago}", file.unwrap_or("changes without a file"))
}

fn applied(journal: &OtherJournal, ago: &impl Fn(Option<u64>) -> String) -> String {
    let text = file_text(journal.file.as_deref(), &ago(journal.since_unix_s));
    format!("{text} ({})", journal.journal.display())
}

fn settings(status: &Status, ago: &impl Fn(Option<u64>) -> String) -> Vec<String> {
    let lasts = if status.persist { "persistent" } else { "until the next boot" };
    let file = file_text(status.file.as_deref(), &ago(status.since_unix_s));
    let mut lines = match status.state {
        State::Nothing | State::Rebooted => return Vec::new(),
        State::Applied => vec![format!("{file}, {lasts}")],
        State::Unfinished => vec![format!("{file}, not finished")],
        State::Waiting => {
            let left = span(status.remaining_s.unwrap_or(0));
            vec![format!("{file}; rolled back in {left}, unless you run: uncork host confirm")]
        }
    };
    lines.extend(status.guard.map(|guard| match guard {
        Watchdog::Alive => "watchdog alive".to_owned(),
        Watchdog::Dead => "watchdog dead".to_owned(),
        Watchdog::Unknown => "watchdog not visible".to_owned(),
    }));
    if let Some(policy) = &status.policy {
        lines.push(format!("{} routes by {}", policy.routes, policy.file));
    }
    let shown = status.settings.iter().take(MAX_SETTINGS);
    lines.extend(shown.map(|it| {
        let now = if it.changed { format!(", but now {}", it.found) } else { String::new() };
        format!("{}: {} (before: {}){now}", it.setting, it.applied, it.before)
    }));
    let more = status.settings.len().saturating_sub(MAX_SETTINGS);
    if more > 0 {
        lines.push(format!("{more} more: uncork host status"));
    }
    lines
}

fn controllers(document: &StatusDocument) -> Vec<String> {
    let all = document.kernel.iter().flat_map(|kernel| &kernel.controllers);
    let loaded = all.filter(|controller| controller.loaded);
    loaded
        .map(|it| {
            let default = if it.default { ", default" } else { "" };
            format!("{}: {} connections{default}", it.name, it.connections)
        })
        .collect()
}

fn steered(cgroup: &CgroupDocument, document: &StatusDocument) -> String {
    let connections: u64 = cgroup.decided.iter().map(|decided| decided.connections).sum();
    let recorder = document.recorders.iter().find(|it| it.cgroup == cgroup.cgroup);
    let recorded = match recorder {
        Some(it) => format!("recorded by process {}", it.process),
        None => "not recorded".to_owned(),
    };
    let mut text =
        format!("{}: {}, {connections} connections, {recorded}", cgroup.cgroup, cgroup.policy);
    if let Some(pending) = &cgroup.pending {
        let to = pending.target();
        let guard = if pending.is_guarded { "alive" } else { "dead" };
        write!(
            text,
            "; rolled back to {to} in {}, unless you run: uncork steer confirm; watchdog {guard}",
            span(pending.left_s)
        )
        .expect("memory");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words_and_cut_at_the_margin() {
        let lines = broken(&"word ".repeat(40));
        assert!(
            lines.len() > 1 && lines.iter().all(|line| NAMES + line.chars().count() <= COLUMNS)
        );
        assert!(lines[1].starts_with("  word"));
        assert_eq!(cut(&"x".repeat(200)).chars().count(), COLUMNS - NAMES);
        assert_eq!(cut("short"), "short");
    }
}
