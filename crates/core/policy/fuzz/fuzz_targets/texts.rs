#![no_main]

use libfuzzer_sys::fuzz_target;
use uncork_policy::{Facts, Policy};

// Any text is parsed or rejected: decision and explanation agree, and errors can be rendered.
fuzz_target!(|text: &str| match Policy::parse("any", text) {
    Ok(policy) => {
        let facts = Facts::default();
        let explained = policy.explain(&facts).text();
        assert!(explained.ends_with(&format!("{}\n", policy.decide(&facts))));
    }
    Err(error) => assert!(error.line() >= 1 && error.render("any", false).starts_with("error: ")),
});
