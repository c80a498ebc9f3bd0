//! Errors the extractor reports.

use uncork_testkit::assert_message;

use super::{Spec, Tag, problems};

const SPEC: &str =
    "title: A spec\n\n§ 1 Section\n1-1 MUST Do it.\n1-2 SHOULD Do that.\n  host: does\n";

fn spec(text: &str) -> Spec {
    Spec::parse("a", text).expect("well-formed")
}

/// The problems in the tags of one source file, checked against [`SPEC`].
fn check(source: &str) -> Vec<String> {
    problems(&[spec(SPEC)], &Tag::scan("f.rs", source).expect("well-formed"))
}

const BOTH: &str = "//= a 1-1\npub(super) const fn f() {}\n#[test]\n//= a 1-1 test\nfn t() {}\n";

#[test]
fn code_and_a_test_are_enough() {
    assert_eq!(check(BOTH), [""; 0]);
    let tags = Tag::scan("f.rs", BOTH).expect("well-formed");
    let items: Vec<_> = tags.iter().map(|tag| (tag.item.as_str(), tag.is_test)).collect();
    assert_eq!(items, [("f", false), ("t", true)]);
}

#[test]
fn rule_without_test_or_code_is_reported() {
    for source in ["//= a 1-1\nfn f() {}\n", "#[test]\n//= a 1-1 test\nfn t() {}\n", ""] {
        assert_message!(source, check(source).join("\n"));
    }
}

#[test]
fn rule_with_both_reason_and_tag_is_reported() {
    let problems = check(&format!("{BOTH}//= a 1-2\nstruct S;\n"));
    assert_message!("a 1-2", problems.join("\n"));
}

#[test]
fn unknown_rule_is_reported() {
    let problems = check(&format!("{BOTH}//= a 9-9\nconst C: u8 = 1;\n//= b 1-1\nenum E {{}}\n"));
    assert_message!("a 9-9, b 1-1", problems.join("\n"));
}

#[test]
fn misplaced_tags_are_reported() {
    for (source, line) in [
        ("//= a 1-1 test\nfn f() {}\n", 1),
        ("//= a 1-1\n/// Docs.\n#[test]\nfn t() {}\n", 1),
        ("#[test]\n//= a 1-1\nfn t() {}\n", 2),
        ("\n//= a 1-1\n\nfn f() {}\n", 2),
    ] {
        let error = Tag::scan("f.rs", source).expect_err("a mistake");
        assert!(error.starts_with(&format!("f.rs:{line}: ")), "{error}");
        assert_message!(source, error);
    }
}

#[test]
fn test_tag_not_directly_above_its_fn_is_reported() {
    let error = |source| Tag::scan("f.rs", source).expect_err("a mistake");
    let too_high = "f.rs:2: the tag of a test stands directly above its `fn`: \
                    move it below `#[test]` and all other attributes";
    assert_eq!(error("\n//= a 1-1 test\n#[test]\nfn t() {}\n"), too_high);
    assert_eq!(error("#[test]\n//= a 1-1 test\n#[ignore]\nfn t() {}\n"), too_high);
    assert_eq!(error("#[test]\n//= a 1-1 test\n/// Docs.\nfn t() {}\n"), too_high);
    let two = "#[test]\n//= a 1-1 test\n//= a 1-2 test\nfn t() {}\n";
    assert_eq!(Tag::scan("f.rs", two).map(|tags| tags.len()), Ok(2));
}

#[test]
fn errors_in_the_rules_are_reported() {
    let error = |text: &str| Spec::parse("a", text).expect_err("a mistake");
    assert_eq!(error(&format!("{SPEC}1-1 MAY Do it.\n")), "a.txt:7: 1-1 is there twice");
    assert_eq!(error("§ 1 S\n1-1 must Do it.\n"), "a.txt:2: 1-1 has no level");
    assert_eq!(error("1-1 MUST Do it.\n"), "a.txt:1: a rule outside a section");
    assert_eq!(error("§ 1 S\n  host: does\n"), "a.txt:2: a reason without a rule");
    assert_eq!(error("§ 1 S\n1-1\n"), "a.txt:2: no rule: 1-1");
}
