//! Parsing any text yields a policy or an error that can be rendered.

use proptest::prelude::*;
use uncork_policy::{Facts, Policy};

use crate::common::{EXAMPLE, NO_HEADERS, request};
use crate::texts::{assert_shown, replace};

/// Meaningful words of policies, to be inserted in wrong places.
const WORDS: &[&str] = &[
    "\"",
    "[",
    "]",
    "{",
    "}",
    "=",
    "\n",
    ".",
    ",",
    "#",
    "0",
    "-1",
    "1e999",
    "nan",
    "true",
    "\\",
    "\"*\"",
    "\"**\"",
    "\"/\"",
    "\"0p\"",
    "\"100%\"",
    "\"0%\"",
    "[[rule]]\n",
    "[experiment.a]\n",
    "[default]\n",
    "use = {}\n",
    "experiment = \"fleet\"\n",
    "\"bbr3\"",
    "9223372036854775807",
    "\u{fffd}",
    "ü",
    "time = { from = \"24:00\", to = \"00:00\" }\n",
    "::/0",
    "/129",
    "AS",
    "0001-01-01T00:00:00-23:59",
    "9999-12-31T23:59:60Z",
    "'\\'",
    "\"cookie:\"",
    "%",
];

/// Parses `text`. Decides with the policy, or renders the error. Returns whether it was parsed.
fn read(text: &str) -> bool {
    match Policy::parse("any", text) {
        Ok(policy) => {
            for facts in [Facts::default(), request(&NO_HEADERS)] {
                let decision = policy.decide(&facts);
                assert!(policy.explain(&facts).text().ends_with(&format!("{decision}\n")));
            }
            true
        }
        Err(error) => {
            assert_shown(&error);
            false
        }
    }
}

#[test]
fn example_parses() {
    assert!(read(EXAMPLE));
}

#[test]
fn deep_nesting_is_rejected() {
    for nested in ["[", "{ a = ", "[[rule]]\nhost = ["] {
        assert!(!read(&format!("a = {}", nested.repeat(100_000))));
    }
    assert!(!read(&format!("[{}]", "a.".repeat(50_000))));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn any_text_is_parsed_or_rejected(text in "\\PC{0,200}") {
        read(&text);
    }

    #[test]
    fn any_bytes_are_parsed_or_rejected(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        read(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn words_in_the_wrong_place(
        edits in prop::collection::vec(
            (0..EXAMPLE.len(), 0_usize..30, prop::sample::select(WORDS)),
            1..4,
        ),
    ) {
        let mut text = EXAMPLE.to_owned();
        for (at, length, word) in edits {
            replace(&mut text, at, length, word);
        }
        read(&text);
    }

    /// Lines missing, repeated or reordered.
    #[test]
    fn lines_in_another_order(picked in prop::collection::vec(0_usize..80, 0..80)) {
        let lines: Vec<&str> = EXAMPLE.lines().collect();
        let text: Vec<&str> = picked.iter().filter_map(|at| lines.get(*at).copied()).collect();
        read(&text.join("\n"));
    }
}
