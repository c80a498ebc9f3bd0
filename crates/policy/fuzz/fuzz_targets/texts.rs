#![no_main]

use libfuzzer_sys::fuzz_target;
use uncork_policy::{Facts, Policy};

// Any text is read or refused: what is read decides and explains the same, an error can be shown.
fuzz_target!(|text: &str| match Policy::parse("any", text) {
    Ok(policy) => {
        let facts = Facts::default();
        let explained = policy.explain(&facts).to_string();
        assert!(explained.ends_with(&format!("{}\n", policy.decide(&facts))));
    }
    Err(error) => assert!(error.line() >= 1 && error.render("any", false).starts_with("error: ")),
});
