//! The sentences that a crate prints, in one file per crate: `tests/messages.txt`.
//!
//! Tests check kind, place and value of an error; the wording is in the file, where a reader can compare all messages.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Asserts that the crate's `tests/messages.txt` has this text for this case of the running test. `UPDATE_DOCS=1` writes
/// the texts of the tests that run, and removes their other cases.
///
/// The case is the value that is reported, such as the text that cannot be parsed.
#[macro_export]
macro_rules! assert_message {
    ($case:expr, $text:expr) => {{
        fn here() {}
        $crate::assert_message_of(
            concat!(env!("CARGO_MANIFEST_DIR"), "/tests/messages.txt").as_ref(),
            core::any::type_name_of_val(&here),
            &$case,
            &$text,
        );
    }};
}

const INDENT: &str = "    ";

/// The tests of this process that have begun to write their texts. One at a time reads and writes a file.
static WRITTEN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// See [`assert_message!`]. `here` is the full name of a function in the test.
///
/// # Panics
///
/// If the file has another text, or cannot be written.
#[track_caller]
pub fn assert_message_of(file: &Path, here: &str, case: &dyn Display, text: &dyn Display) {
    let test = here.trim_end_matches("::here").replace("::{{closure}}", "") + " ";
    let key = format!("{test}{:?}", case.to_string());
    let text = text.to_string();
    let mut written = WRITTEN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut messages = parse(&std::fs::read_to_string(file).unwrap_or_default());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        if written.insert(test.clone()) {
            messages.retain(|key, _| !key.starts_with(&test));
        }
        // The first text stays: a case with two of them fails.
        messages.entry(key.clone()).or_insert_with(|| text.clone());
        std::fs::write(file, display(&messages)).expect("the messages are writable");
    }
    let known = messages.get(&key);
    assert_eq!(Some(&text), known, "{}: `{key}`: UPDATE_DOCS=1 writes it", file.display());
}

/// Messages by test and case: a line with both, then the lines of the message, indented.
fn parse(file: &str) -> BTreeMap<String, String> {
    let mut messages = BTreeMap::<&str, Vec<&str>>::new();
    let mut key = "";
    for line in file.lines() {
        match line.strip_prefix(INDENT).or(line.is_empty().then_some("")) {
            Some(text) => messages.entry(key).or_default().push(text),
            None => key = line,
        }
    }
    messages.into_iter().map(|(key, lines)| (key.to_owned(), lines.join("\n"))).collect()
}

fn display(messages: &BTreeMap<String, String>) -> String {
    let mut file = String::new();
    for (key, message) in messages {
        file.extend([key, "\n"]);
        for line in message.split('\n') {
            file += format!("{INDENT}{line}").trim_end();
            file.push('\n');
        }
    }
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_read_back() {
        let messages = [("t \"a\"", "one line"), ("t \"b\"", "two\n\n  lines")];
        let messages = messages.map(|(key, text)| (key.to_owned(), text.to_owned())).into();
        assert_eq!(parse(&display(&messages)), messages);
    }

    #[test]
    fn another_text_is_reported() {
        let scratch = crate::Scratch::new("messages");
        let file = scratch.write("messages.txt", "a::test \"1\"\n    as it is\n");
        assert_message_of(&file, "a::test::{{closure}}::here", &1, &"as it is");
        let other = || assert_message_of(&file, "a::test::here", &1, &"another");
        assert!(std::panic::catch_unwind(other).is_err());
    }
}
