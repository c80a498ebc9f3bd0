//! The sentences that a crate prints, in one file per crate: `tests/messages.txt`.
//!
//! Tests check kind, place and value of an error; the wording is in the file, where a reader can compare all messages.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

/// Asserts that the crate's `tests/messages.txt` has this text for this case of the running test. `UPDATE_DOCS=1` writes it.
///
/// The case is the value that is reported, such as the text that cannot be parsed.
#[macro_export]
macro_rules! assert_message {
    ($case:expr, $text:expr) => {{
        fn here() {}
        $crate::assert_message_of(
            concat!(env!("CARGO_MANIFEST_DIR"), "/tests/messages.txt").as_ref(),
            std::any::type_name_of_val(&here),
            &$case.to_string(),
            &$text.to_string(),
        );
    }};
}

const INDENT: &str = "    ";

/// One test at a time reads and writes a file.
static FILE: Mutex<()> = Mutex::new(());

/// See [`assert_message!`]. `here` is the full name of a function in the test.
///
/// # Panics
///
/// If the file has another text, or cannot be written.
#[track_caller]
pub fn assert_message_of(file: &Path, here: &str, case: &str, text: &str) {
    let test = here.trim_end_matches("::here").replace("::{{closure}}", "");
    let key = format!("{test} {case:?}");
    let _guard = FILE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut messages = parse(&std::fs::read_to_string(file).unwrap_or_default());
    if std::env::var_os("UPDATE_DOCS").is_some()
        && messages.get(&key).is_none_or(|known| known != text)
    {
        messages.insert(key.clone(), text.to_owned());
        std::fs::write(file, display(&messages)).expect("the messages are writable");
    }
    let known = messages.get(&key).map(String::as_str);
    assert_eq!(Some(text), known, "{}: `{key}`: UPDATE_DOCS=1 writes it", file.display());
}

/// Messages by test and case: a line with both, then the lines of the message, indented.
fn parse(file: &str) -> BTreeMap<String, String> {
    let mut messages = BTreeMap::<&str, Vec<&str>>::new();
    let mut key = "";
    for line in file.lines() {
        match line.strip_prefix(INDENT) {
            Some(text) => messages.entry(key).or_default().push(text),
            None => key = line,
        }
    }
    messages.into_iter().map(|(key, lines)| (key.to_owned(), lines.join("\n"))).collect()
}

fn display(messages: &BTreeMap<String, String>) -> String {
    let indented = |message: &str| message.replace('\n', &format!("\n{INDENT}"));
    messages
        .iter()
        .map(|(key, message)| format!("{key}\n{INDENT}{}\n", indented(message)))
        .collect()
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
        assert_message_of(&file, "a::test::{{closure}}::here", "1", "as it is");
        let other =
            std::panic::catch_unwind(|| assert_message_of(&file, "a::test::here", "1", "another"));
        assert!(other.is_err() || std::env::var_os("UPDATE_DOCS").is_some());
    }
}
