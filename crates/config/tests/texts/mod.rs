//! Shared by tests of configuration texts: mistakes and their expected errors, and random edits.
#![allow(dead_code, reason = "no test target uses all of it")]

use uncork_config::{ConfigError, Source};

/// A mistake: `old` is replaced by `new`. With it the expected message, marked text and help.
pub(crate) struct Case {
    old: &'static str,
    pub(crate) new: &'static str,
    pub(crate) message: &'static str,
    marked: &'static str,
    help: &'static str,
}

pub(crate) const fn case(
    old: &'static str,
    new: &'static str,
    message: &'static str,
    marked: &'static str,
    help: &'static str,
) -> Case {
    Case { old, new, message, marked, help }
}

impl Case {
    /// `example` with the mistake.
    pub(crate) fn within(&self, example: &str) -> String {
        assert!(example.contains(self.old), "{} is not in the example", self.old);
        example.replacen(self.old, self.new, 1)
    }

    /// Checks the message, place and help of `error`, which is about `text`.
    pub(crate) fn assert_told(&self, text: &str, error: &ConfigError) {
        let shown = error.render("test.toml", false);
        let place = error.place();
        assert_eq!(place.source, Source::Text, "{shown}");
        assert!(error.message().contains(self.message), "{shown}");
        assert!(error.suggestion().unwrap_or_default().contains(self.help), "{shown}");
        let line = text[..place.span.start].matches('\n').count() + 1;
        assert_eq!(error.line(), line, "{shown}");
        assert!(shown.contains(&format!("test.toml:{line}:")), "{shown}");
        if !self.marked.is_empty() {
            assert_eq!(&text[place.span.clone()], self.marked, "{shown}");
        }
    }
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
