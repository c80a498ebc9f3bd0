//! The live table: its state, its keys and its lines.

use crate::row::{GroupBy, Row, SortBy};
use crate::text;
use crate::tracker::Tracker;

const HELP: &str = "q quit  g group  s sort  r reverse  / filter  f freeze  i idle  arrows scroll";

/// The user's settings of the table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ViewSettings {
    /// What each row represents.
    pub by: GroupBy,
    /// The column by which the table is sorted.
    pub sort: SortBy,
    /// Whether the order is reversed.
    pub is_reversed: bool,
    /// Whether connections that sent nothing are shown.
    pub has_idle: bool,
    /// Only connections with this in their text are shown.
    pub filter: String,
}

/// The live table.
#[derive(Debug)]
pub struct View {
    settings: ViewSettings,
    /// A filter that is being typed.
    input: Option<String>,
    is_frozen: bool,
    /// Number of rows scrolled past.
    top: usize,
    summary: String,
    /// A row for each connection, and for each that ended in the last period.
    connections: Vec<Row>,
    /// The visible rows, after grouping, filtering and sorting.
    rows: Vec<Row>,
}

/// A key that was pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A character.
    Char(char),
    /// Enter.
    Enter,
    /// Escape.
    Escape,
    /// Backspace.
    Backspace,
    /// The arrow up.
    Up,
    /// The arrow down.
    Down,
    /// Page up.
    PageUp,
    /// Page down.
    PageDown,
    /// Ctrl-C.
    Interrupt,
}

const PAGE: usize = 20;

impl View {
    /// A view before the first pass.
    pub fn new(settings: ViewSettings) -> Self {
        Self {
            settings,
            input: None,
            is_frozen: false,
            top: 0,
            summary: String::new(),
            connections: Vec::new(),
            rows: Vec::new(),
        }
    }

    /// Shows the latest pass, unless the view is frozen.
    pub fn update(&mut self, tracker: &Tracker) {
        if self.is_frozen {
            return;
        }
        self.connections.clear();
        self.connections.extend(tracker.connections().map(Row::of));
        self.connections.extend(tracker.closed_connections().map(Row::of_closed));
        self.summary = text::summary(tracker, &self.connections);
        self.arrange();
    }

    /// Filters, groups and sorts the rows.
    fn arrange(&mut self) {
        let ViewSettings { by, sort, is_reversed, has_idle, filter } = &self.settings;
        let shown = |row: &&Row| {
            let is_shown = match row.connections {
                // What has ended has no line of its own.
                0 => *by != GroupBy::Socket && row.sent > 0,
                _ => *has_idle || row.active > 0,
            };
            is_shown && row.matches(filter)
        };
        let mut rows: Vec<Row> = self.connections.iter().filter(shown).copied().collect();
        if *by != GroupBy::Socket {
            rows = Row::grouped(&rows, *by);
        }
        rows.sort_by(|one, other| one.order(other, *sort));
        if *is_reversed {
            rows.reverse();
        }
        self.rows = rows;
        self.top = self.top.min(self.rows.len().saturating_sub(1));
    }

    /// Handles a key. Returns false if the user quits.
    pub fn press(&mut self, key: Key) -> bool {
        if key == Key::Interrupt {
            return false;
        }
        if self.input.is_some() {
            self.edit(key);
            return true;
        }
        let settings = &mut self.settings;
        match key {
            Key::Char('q') | Key::Escape => return false,
            Key::Char('g') => settings.by = next(&GroupBy::ALL, settings.by),
            Key::Char('s') => settings.sort = next(&SortBy::ALL, settings.sort),
            Key::Char('r') => settings.is_reversed = !settings.is_reversed,
            Key::Char('i') => settings.has_idle = !settings.has_idle,
            Key::Char('f') => self.is_frozen = !self.is_frozen,
            Key::Char('/') => self.input = Some(String::new()),
            Key::Up => self.top = self.top.saturating_sub(1),
            Key::Down => self.top += 1,
            Key::PageUp => self.top = self.top.saturating_sub(PAGE),
            Key::PageDown => self.top += PAGE,
            _ => {}
        }
        self.arrange();
        true
    }

    /// Handles a key while a filter is being typed. The table is updated immediately.
    fn edit(&mut self, key: Key) {
        let input = self.input.get_or_insert_default();
        match key {
            Key::Char(character) => input.push(character),
            Key::Backspace => drop(input.pop()),
            Key::Enter => {
                self.input = None;
                return;
            }
            Key::Escape => input.clear(),
            _ => return,
        }
        self.settings.filter.clone_from(input);
        if key == Key::Escape {
            self.input = None;
        }
        self.arrange();
    }

    /// The contents of a terminal of this size: `height` lines of at most `width` characters.
    pub fn screen(&self, width: usize, height: usize) -> Vec<String> {
        let mut lines = vec![self.summary.clone(), self.status()];
        let room = height.saturating_sub(lines.len() + 2);
        let end = self.rows.len().min(self.top + room);
        let rows = self.rows.get(self.top..end).unwrap_or_default();
        lines.extend(text::fitted(rows, self.settings.by, width));
        lines.resize(height.saturating_sub(1), String::new());
        lines.push(HELP.to_owned());
        lines.truncate(height);
        lines.iter().map(|line| line.chars().take(width).collect()).collect()
    }

    fn status(&self) -> String {
        let settings = &self.settings;
        let reversed = if settings.is_reversed { ", reversed" } else { "" };
        let frozen = if self.is_frozen { "  FROZEN" } else { "" };
        let filter = match &self.input {
            Some(input) => format!("  filter: {input}_"),
            None if settings.filter.is_empty() => String::new(),
            None => format!("  filter: {}", settings.filter),
        };
        let (by, sort) = (settings.by.name(), settings.sort.name());
        format!("by {by}, sorted by {sort}{reversed}{filter}{frozen}")
    }

    /// A pass as plain text: a summary line, then a heading and the first `most` rows, if there are
    /// any.
    pub fn plain(&self, most: usize) -> String {
        let mut text = format!("{}\n", self.summary);
        let rows = &self.rows[..self.rows.len().min(most)];
        if !rows.is_empty() {
            for line in text::table(rows, self.settings.by) {
                text.push_str(&line);
                text.push('\n');
            }
        }
        text
    }
}

fn next<T: Copy + PartialEq>(all: &[T], now: T) -> T {
    let index = all.iter().position(|one| *one == now).unwrap_or(0);
    all[(index + 1) % all.len()]
}
