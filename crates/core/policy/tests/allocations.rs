//! Deciding does not allocate.

use uncork_policy::{Fact, Facts, Policy};

#[test]
fn decision_does_not_allocate() {
    let text = include_str!("../../../../docs/reference/policy.md");
    for block in text.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()) {
        let policy = Policy::parse("doc", block).expect("a policy");
        let headers =
            [("x-client", "ios/1"), ("save-data", "on"), ("cookie", "a=1; uid=7; beta=1")];
        let facts = Facts {
            listener: Fact::Known("public"),
            client: Fact::Known("203.0.113.9".parse().expect("an address")),
            host: Fact::Known("media.example:443"),
            path: Fact::Known("/video/a/b/c.m4s"),
            query: Fact::Known("a=1&bbr=true"),
            headers: Fact::Known(&headers),
            ..Facts::default()
        };
        let allocated = allocation_counter::measure(|| {
            std::hint::black_box(policy.decide(std::hint::black_box(&facts)));
        });
        assert_eq!(allocated.count_total, 0, "{block}");
    }
}
