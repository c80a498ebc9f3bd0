//! Configuration errors and their places.

use std::fmt;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use thiserror::Error;

use crate::{nearest, visible};

/// Why a text is rejected. `Display` gives one line; [`ConfigError::render`] shows the place, too.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}{}", .0.message, .0.help.as_ref().map_or_else(String::new, |help| format!("; {help}")))]
pub struct ConfigError(Box<Details>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Details {
    message: String,
    place: Place,
    expected: Option<String>,
    help: Option<String>,
    notes: Vec<String>,
    /// The text that contains `place`; attached by [`ConfigError::within`].
    text: String,
}

/// A part of the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The text.
    pub source: Source,
    /// The byte range in that text.
    pub span: Range<usize>,
}

/// An input text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The text itself.
    Text,
    /// The n-th override `key=value`, counted from 0.
    Set(usize),
    /// A file that the text names, with its contents.
    File {
        /// Its name.
        name: String,
        /// Its contents.
        text: String,
    },
}

impl Place {
    /// A part of the text itself.
    pub fn in_text(span: Range<usize>) -> Self {
        Self { source: Source::Text, span }
    }

    /// The line `number`, counted from 1, of a file.
    pub fn in_file(name: &str, text: &str, number: usize) -> Self {
        let start = text.split_inclusive('\n').take(number.saturating_sub(1)).map(str::len).sum();
        let line = text[start..].lines().next().unwrap_or_default();
        let source = Source::File { name: name.to_owned(), text: text.to_owned() };
        Self { source, span: start..start + line.len() }
    }
}

impl ConfigError {
    /// An error with `message` at `place`.
    pub fn new(place: &Place, message: impl Into<String>) -> Self {
        Self(Box::new(Details {
            message: message.into(),
            place: place.clone(),
            expected: None,
            help: None,
            notes: Vec::new(),
            text: String::new(),
        }))
    }

    /// The error of another crate. Its text consists of the message and, after a semicolon or colon, the
    /// remedy; or it begins with `expected`.
    pub fn worded(place: &Place, error: impl fmt::Display) -> Self {
        Self::of_words(place, error.to_string())
    }

    fn of_words(place: &Place, text: String) -> Self {
        if text.starts_with("expected ") {
            return Self::new(place, "invalid value").expected(text);
        }
        let cut = text.find("; ").or_else(|| text.find(": "));
        let cut = cut.map(|at| (text[..at].to_owned(), text[at + 2..].to_owned()));
        match cut {
            Some((message, help)) => Self::new(place, message).help(help),
            None => Self::new(place, text),
        }
    }

    /// Adds what is expected at the place.
    #[must_use]
    pub fn expected(mut self, expected: impl Into<String>) -> Self {
        self.0.expected = Some(expected.into());
        self
    }

    /// Adds the remedy.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.0.help = Some(help.into());
        self
    }

    /// Suggests the `known` word most similar to `word`, or lists all if none is similar.
    #[must_use]
    pub fn nearest<'a>(self, word: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        let known: Vec<&str> = known.into_iter().collect();
        self.nearest_of(word, &known)
    }

    fn nearest_of(self, word: &str, known: &[&str]) -> Self {
        if let Some(near) = nearest(word, known.iter().copied()) {
            return self.help(format!("did you mean `{near}`?"));
        }
        let names: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
        if names.is_empty() { self } else { self.help(format!("available: {}", names.join(", "))) }
    }

    /// Suggests the `known` word most similar to `word`, if any is similar.
    #[must_use]
    pub fn or_nearest<'a>(self, word: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        match nearest(word, known) {
            Some(near) => self.help(format!("did you mean `{near}`?")),
            None => self,
        }
    }

    /// Adds a note.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.0.notes.push(note.into());
        self
    }

    /// Attaches the text that contains the place.
    #[must_use]
    pub fn within(mut self, whole: &str, set: &[(String, String)]) -> Self {
        self.0.text = match &self.0.place.source {
            Source::Text => whole.to_owned(),
            Source::Set(index) => {
                set.get(*index).map_or_else(String::new, |(key, value)| format!("{key}={value}"))
            }
            Source::File { text, .. } => text.clone(),
        };
        self
    }

    /// The message.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The place.
    pub fn place(&self) -> &Place {
        &self.0.place
    }

    /// The line of the place in its text, counted from 1.
    pub fn line(&self) -> usize {
        let before = self.0.text.as_bytes().iter().take(self.0.place.span.start);
        before.filter(|byte| **byte == b'\n').count() + 1
    }

    /// What is expected at the place.
    pub fn expectation(&self) -> Option<&str> {
        self.0.expected.as_deref()
    }

    /// The remedy.
    pub fn suggestion(&self) -> Option<&str> {
        self.0.help.as_deref()
    }

    /// The message with the marked place, like a compiler's. `file` is the text's name, such as the path that
    /// the user gave.
    pub fn render(&self, file: &str, color: bool) -> String {
        let Details { message, place, expected, help, notes, text } = &*self.0;
        let path = visible(match &place.source {
            Source::Text => file,
            Source::Set(_) => "--set",
            Source::File { name, .. } => name,
        });
        let mark = AnnotationKind::Primary.span(within_line(text, &place.span));
        let mark = mark.label(expected.as_deref().map(visible));
        let snippet = Snippet::source(text.as_str()).path(&*path).annotation(mark);
        let mut group = Level::ERROR.primary_title(visible(message)).element(snippet);
        for note in notes {
            group = group.element(Level::NOTE.message(visible(note)));
        }
        if let Some(help) = help {
            group = group.element(Level::HELP.message(visible(help)));
        }
        let renderer = if color { Renderer::styled() } else { Renderer::plain() };
        renderer.render(&[group])
    }
}

/// The span, limited to `text` and to its first line.
fn within_line(text: &str, span: &Range<usize>) -> Range<usize> {
    let floor = |at: usize| (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    let start = floor(span.start).unwrap_or(0);
    let end = floor(span.end).unwrap_or(0).max(start);
    let line = text[start..end].split('\n').next().map_or(0, |line| line.trim_end().len());
    start..start + line
}
