//! What tests of texts that people write have in common, whatever the texts are: mistakes that are told
//! with their place and remedy, and texts that are cut and mixed up.
#![allow(dead_code, reason = "no test target uses all of it")]

use uncork_config::{ConfigError, Source};

/// A text with `old` replaced, what goes wrong, the words at the marked place, and the suggestion.
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
    /// `example` with the mistake in it.
    pub(crate) fn within(&self, example: &str) -> String {
        assert!(example.contains(self.old), "{} is not in the example", self.old);
        example.replacen(self.old, self.new, 1)
    }

    /// That `error`, about `text`, is told where it is and with what to do.
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

/// Whatever is wrong, it can be shown.
pub(crate) fn assert_shown(error: &ConfigError) {
    assert!(!error.message().is_empty());
    assert!(error.line() >= 1);
    assert!(error.render("any.toml", false).starts_with("error: "));
}

/// Puts `word` in the place of `length` bytes of `text` from `at` on, or what are whole characters there.
pub(crate) fn replace(text: &mut String, at: usize, length: usize, word: &str) {
    let begin = boundary(text, at);
    let end = boundary(text, begin + length).max(begin);
    text.replace_range(begin..end, word);
}

/// The nearest boundary of a character.
fn boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}
