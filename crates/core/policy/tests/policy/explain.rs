//! The text of explanations.

use uncork_policy::Fact;
use uncork_testkit::assert_message;

use crate::common::{EXAMPLE, NO_HEADERS, policy, request};

#[test]
fn each_rule_is_explained() {
    let policy = policy(EXAMPLE);
    let mut facts = request(&NO_HEADERS);
    facts.sni = Fact::Absent;
    facts.host = Fact::Known("audio-bbr.example");
    assert_message!("all", policy.explain(&facts).text());
}

#[test]
fn unknown_facts_are_shown() {
    let policy = policy(
        "[experiment.e]\nunit = \"cookie:uid\"\nshare = \"100%\"\n[experiment.e.arm.a]\n\
         [[rule]]\nlistener = \"public\"\npath = \"/a\"\nexperiment = \"e\"\n\
         [[rule]]\nquery = { a = \"1\" }\nheader = { X-A = \"2\" }\ncookie = { b = \"3\" }\n\
         use = { tcp = \"bbr\" }\n",
    );
    let mut facts = request(&NO_HEADERS);
    (facts.path, facts.headers) = (Fact::Unknown, Fact::Unknown);
    assert_message!("unknown", policy.explain(&facts).text());
    facts.headers = Fact::Known(&[("cookie", "uid=7"), ("x-a", "\u{1b}[0m")]);
    facts.path = Fact::Known("/a");
    assert_message!("known", policy.explain(&facts).text());
    facts.path = Fact::Known("/b");
    assert_message!("another path", policy.explain(&facts).text());
}
