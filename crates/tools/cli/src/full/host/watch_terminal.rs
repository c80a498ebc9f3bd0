//! The terminal of the live table.

use std::io::{self, Stdout, Write};
use std::panic;
use std::time::Duration;

use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, poll, read};
use crossterm::style::{Attribute, Print, SetAttribute};
use crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode,
    enable_raw_mode, size,
};
use crossterm::{execute, queue};
use uncork_config::visible;
use uncork_watch::{Key, View};

/// The line with the headings of the table.
const HEADING: usize = 2;

/// The terminal, until it is dropped: then it is as it was before.
#[derive(Debug)]
pub(super) struct Screen(Stdout);

impl Screen {
    pub(super) fn open() -> io::Result<Self> {
        // A panic ends the process without dropping anything.
        let print = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            restore();
            print(panic);
        }));
        enable_raw_mode()?;
        let mut screen = Self(io::stdout());
        execute!(screen.0, EnterAlternateScreen, Hide)?;
        Ok(screen)
    }

    pub(super) fn draw(&mut self, view: &View) -> io::Result<()> {
        let (width, height) = size()?;
        for (number, line) in view.screen(width.into(), height.into()).iter().enumerate() {
            let style = if number == HEADING { Attribute::Reverse } else { Attribute::Reset };
            queue!(
                self.0,
                MoveTo(0, number as u16),
                SetAttribute(style),
                Print(shown(line, width.into())),
                SetAttribute(Attribute::Reset),
                Clear(ClearType::UntilNewLine)
            )?;
        }
        self.0.flush()
    }

    /// The keys that are pressed within `wait`; returns at the first.
    pub(super) fn keys(wait: Duration) -> io::Result<Vec<Key>> {
        let mut keys = Vec::new();
        let mut wait = wait;
        while poll(wait)? {
            if let Event::Key(event) = read()? {
                keys.extend(key(event));
            }
            wait = Duration::ZERO;
        }
        Ok(keys)
    }
}

/// A line within the terminal; names of others have no control characters.
fn shown(line: &str, width: usize) -> String {
    visible(line).chars().take(width).collect()
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

fn restore() {
    // Nothing is left to report to.
    let _ = execute!(io::stdout(), Show, LeaveAlternateScreen);
    let _ = disable_raw_mode();
}

fn key(event: KeyEvent) -> Option<Key> {
    if event.kind == KeyEventKind::Release {
        return None;
    }
    let has_control = event.modifiers.contains(KeyModifiers::CONTROL);
    Some(match event.code {
        // In raw mode it is a key, not a signal.
        KeyCode::Char('c') if has_control => Key::Interrupt,
        KeyCode::Char(character) => Key::Char(character),
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Escape,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        _ => return None,
    })
}
