//! Recorded sessions: a header line of JSON, then one line per event.

use std::io::{self, BufRead, Write};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::event::Event;

/// Schema of a recorded session.
pub const WATCH_SCHEMA: &str = "uncork.host-watch/1";

/// The header line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Head {
    #[cfg_attr(test, schemars(extend("const" = WATCH_SCHEMA)))]
    schema: String,
    /// Whether the kernel reports which sockets it destroyed.
    has_close_events: bool,
}

/// Why a recorded session cannot be replayed.
#[derive(Debug, Error)]
pub enum TapeError {
    /// It cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A line is invalid.
    #[error("line {line}: {reason}; expected a session of {WATCH_SCHEMA}")]
    Line {
        /// Its number, from 1.
        line: u64,
        /// The reason.
        reason: String,
    },
}

/// Records a session.
#[derive(Debug)]
pub struct TapeWriter<W>(W);

/// Reads a recorded session.
#[derive(Debug)]
pub struct TapeReader<R> {
    input: R,
    text: String,
    line: u64,
    has_close_events: bool,
}

impl<W: Write> TapeWriter<W> {
    /// Starts a recording, with or without close events of destroyed sockets.
    ///
    /// # Errors
    ///
    /// The errors of the writer.
    pub fn new(out: W, has_close_events: bool) -> io::Result<Self> {
        let mut tape = Self(out);
        tape.line(&Head { schema: WATCH_SCHEMA.to_owned(), has_close_events })?;
        Ok(tape)
    }

    /// Records an event.
    ///
    /// # Errors
    ///
    /// The errors of the writer.
    pub fn write(&mut self, event: &Event) -> io::Result<()> {
        self.line(event)
    }

    /// Flushes all buffers.
    ///
    /// # Errors
    ///
    /// The errors of the writer.
    pub fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }

    fn line(&mut self, value: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut self.0, value)?;
        self.0.write_all(b"\n")
    }
}

impl<R: BufRead> TapeReader<R> {
    /// Reads the header line.
    ///
    /// # Errors
    ///
    /// The errors of the reader, or if the file is not a recorded session.
    pub fn new(input: R) -> Result<Self, TapeError> {
        let mut tape = Self { input, text: String::new(), line: 0, has_close_events: false };
        let wrong = |reason: String| TapeError::Line { line: 1, reason };
        if !tape.advance()? {
            return Err(wrong("the file is empty".to_owned()));
        }
        let head: Head =
            serde_json::from_str(&tape.text).map_err(|error| wrong(error.to_string()))?;
        if head.schema != WATCH_SCHEMA {
            return Err(wrong(format!("schema is {}", head.schema)));
        }
        tape.has_close_events = head.has_close_events;
        Ok(tape)
    }

    /// Whether the session had close events of destroyed sockets.
    pub const fn has_close_events(&self) -> bool {
        self.has_close_events
    }

    /// The next event; `None` at the end. A killed process leaves an incomplete last line, which is
    /// ignored.
    ///
    /// # Errors
    ///
    /// The errors of the reader, or if a line is not an event.
    pub fn read(&mut self) -> Result<Option<Event>, TapeError> {
        if !self.advance()? || !self.text.ends_with('\n') {
            return Ok(None);
        }
        let line = self.line;
        let wrong = |error: serde_json::Error| TapeError::Line { line, reason: error.to_string() };
        serde_json::from_str(&self.text).map(Some).map_err(wrong)
    }

    fn advance(&mut self) -> io::Result<bool> {
        self.text.clear();
        self.line += 1;
        Ok(self.input.read_line(&mut self.text)? > 0)
    }
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;
    use uncork_testkit::assert_schema;

    use super::*;

    #[derive(JsonSchema)]
    #[serde(untagged)]
    #[expect(clippy::large_enum_variant, dead_code, reason = "describes a line")]
    enum Line {
        Head(Head),
        Event(Event),
    }

    #[test]
    fn schema_is_current() {
        let title = "A line of a session that `uncork host watch --record` recorded: first a header, then events";
        assert_schema!(Line, "host-watch-1", title);
    }
}
