//! Tests of configuration files of any kind: mistakes with their place and message, and mutations.
#![allow(dead_code, reason = "no test target uses all of it")]

use uncork_config::{ConfigError, Source};

/// A mistake: `old` replaced by `new`, and the text that the error marks.
pub(crate) struct Case {
    old: &'static str,
    pub(crate) new: &'static str,
    marked: &'static str,
}

pub(crate) const fn case(old: &'static str, new: &'static str, marked: &'static str) -> Case {
    Case { old, new, marked }
}

impl Case {
    /// The mistake as the case of a message. The same text may replace several others.
    pub(crate) fn name(&self) -> String {
        format!("{} instead of {}", self.new, self.old)
    }

    /// `example` with the mistake.
    pub(crate) fn within(&self, example: &str) -> String {
        assert!(example.contains(self.old), "{} is not in the example", self.old);
        example.replacen(self.old, self.new, 1)
    }

    /// Asserts that `error` marks the mistake in `text`.
    pub(crate) fn assert_marked(&self, text: &str, error: &ConfigError) {
        let shown = error.render("test.toml", false);
        let place = error.place();
        assert_eq!(place.source, Source::Text, "{shown}");
        let line = text[..place.span.start].matches('\n').count() + 1;
        assert_eq!(error.line(), line, "{shown}");
        assert!(shown.contains(&format!("test.toml:{line}:")), "{shown}");
        if !self.marked.is_empty() {
            assert_eq!(&text[place.span.clone()], self.marked, "{shown}");
        }
    }
}

/// The sentences of `error`: the message, and what helps, if there is something.
pub(crate) fn message(error: &ConfigError) -> String {
    let help = error.suggestion().or(error.expectation()).map(|help| format!("\nhelp: {help}"));
    format!("{}{}", error.message(), help.unwrap_or_default())
}

/// Checks that `error` can be rendered.
pub(crate) fn assert_shown(error: &ConfigError) {
    assert!(!error.message().is_empty());
    assert!(error.line() >= 1);
    assert!(error.render("any.toml", false).starts_with("error: "));
}

/// Replaces `length` bytes of `text` at `at` by `word`, rounded down to character boundaries.
pub(crate) fn replace(text: &mut String, at: usize, length: usize, word: &str) {
    let begin = boundary(text, at);
    let end = boundary(text, begin + length).max(begin);
    text.replace_range(begin..end, word);
}

/// The last character boundary at or before `at`.
fn boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}
