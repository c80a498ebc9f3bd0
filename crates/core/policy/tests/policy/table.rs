//! Tables of networks: which entry decides, and which tables are refused.

use uncork_policy::{Asked, Fact, Facts, Policy, UnixTime};
use uncork_testkit::{assert_message, finished_table};

use crate::common::{NO_HEADERS, policy, request};

const POLICY: &str = r#"
[default]
tcp = "cubic"

[table]
file = "networks.table"

[table.arm.control]
tcp = "cubic"

[table.arm.bbr]
quic = "bbr3"
tcp = "bbr"

[[rule]]
name = "large"
size = { min = "3MB" }
table = "large"

[[rule]]
name = "small"
table = "small"
"#;

const BODY: &str = "\
uncork-table 1
version 7
made 1970-01-01T00:00:00Z
expires 1970-01-08T00:00:00Z
section large
* control
PE bbr
AS64500 bbr
203.0.113.0/24 bbr
203.0.113.128/25 control
203.0.113.129/32 bbr
2001:db8::/32 bbr
2001:db8:1::/48 control
section small
203.0.113.0/24 bbr
";

fn with_table() -> Policy {
    let mut policy = policy(POLICY);
    policy.take_table(finished_table(BODY).as_bytes()).expect("a table");
    policy
}

fn large(client: &str, asn: u32, country: &str) -> Facts<'static> {
    Facts {
        client: Fact::Known(client.parse().expect("an address")),
        asn: Fact::Known(asn),
        country: Fact::Known(country.parse().expect("a country")),
        size: Fact::Known(uncork_units::ByteCount::new(3_000_000)),
        ..request(&NO_HEADERS)
    }
}

/// The deciding rule, its last condition in words, and the settings for TCP.
fn decided<'p>(policy: &'p Policy, facts: &Facts<'_>) -> (Option<&'p str>, String, &'p str) {
    let explained = policy.explain(facts);
    assert_eq!(explained.decision, policy.decide(facts));
    let rule = explained.rules.iter().find(|rule| rule.outcome == Asked::Decides);
    let found = rule.and_then(|rule| rule.conditions.last()).map(|it| it.found.clone());
    let tcp = explained.decision.settings.tcp.as_deref().unwrap_or_default();
    (rule.and_then(|rule| rule.name), found.unwrap_or_default(), tcp)
}

#[test]
fn narrowest_entry_decides() {
    let policy = with_table();
    for (client, asn, country, entry, tcp) in [
        ("203.0.113.9", 1, "PE", "203.0.113.0/24", "bbr"),
        ("::ffff:203.0.113.9", 1, "PE", "203.0.113.0/24", "bbr"),
        ("203.0.113.128", 64_500, "PE", "203.0.113.128/25", "cubic"),
        ("203.0.113.129", 1, "DE", "203.0.113.129/32", "bbr"),
        ("203.0.114.0", 64_500, "DE", "AS64500", "bbr"),
        ("203.0.112.255", 1, "PE", "PE", "bbr"),
        ("198.51.100.1", 1, "DE", "all clients", "cubic"),
        ("2001:db8::1", 1, "DE", "2001:db8::/32", "bbr"),
        ("2001:db8:1:ffff::1", 1, "DE", "2001:db8:1::/48", "cubic"),
        ("2001:db9::", 1, "DE", "all clients", "cubic"),
    ] {
        let (rule, found, chosen) = decided(&policy, &large(client, asn, country));
        assert_eq!((rule, chosen), (Some("large"), tcp), "{client}");
        assert!(found.ends_with(&format!(" for {entry}")), "{client}: {found}");
    }
}

#[test]
fn without_an_entry_the_next_rule_applies() {
    let policy = with_table();
    let mut facts = large("203.0.113.200", 1, "DE");
    facts.size = Fact::Absent;
    let (rule, found, tcp) = decided(&policy, &facts);
    assert_eq!((rule, tcp), (Some("small"), "bbr"));
    assert_eq!(found, "version 7 has arm `bbr` for 203.0.113.0/24");
    facts.client = Fact::Known("198.51.100.1".parse().expect("an address"));
    assert_eq!(decided(&policy, &facts).0, None, "the default decides");
}

#[test]
fn expired_and_unread_tables_match_no_client() {
    let read = with_table();
    let mut facts = large("203.0.113.9", 64_500, "PE");
    facts.accepted = Fact::Known(UnixTime(7 * 86_400 - 1));
    assert_eq!(decided(&read, &facts).2, "bbr");
    facts.accepted = Fact::Known(UnixTime(7 * 86_400));
    assert_eq!((decided(&read, &facts).0, decided(&read, &facts).2), (None, "cubic"));
    assert_message!("expired", read.explain(&facts).text());
    facts.accepted = Fact::Known(UnixTime(0));
    let unread = policy(POLICY);
    assert_eq!((decided(&unread, &facts).0, decided(&unread, &facts).2), (None, "cubic"));
    assert_message!("not read", unread.explain(&facts).text());
}

#[test]
fn what_is_not_known_yet_does_not_decide() {
    let policy = with_table();
    let facts = large("203.0.113.9", 64_500, "PE");
    assert!(policy.decide(&facts).is_final);
    for unknown in [
        Facts { client: Fact::Unknown, ..facts },
        Facts { accepted: Fact::Unknown, ..facts },
        Facts { client: Fact::Known("10.0.0.1".parse().expect("it")), asn: Fact::Unknown, ..facts },
    ] {
        assert!(!policy.decide(&unknown).is_final);
    }
    let network_known = Facts { asn: Fact::Unknown, country: Fact::Unknown, ..facts };
    assert!(policy.decide(&network_known).is_final, "no database is needed for a network");
}

#[test]
fn tables_have_different_fingerprints() {
    let other = BODY.replace("AS64500 bbr", "AS64501 bbr");
    let mut again = policy(POLICY);
    again.take_table(finished_table(&other).as_bytes()).expect("a table");
    assert_ne!(again.fingerprint(), with_table().fingerprint());
    assert_ne!(again.fingerprint(), policy(POLICY).fingerprint());
}

#[test]
fn broken_tables_are_refused_whole() {
    let cases = [
        ("uncork-table 1", "uncork-table 2", "line 1: the first line is not `uncork-table 1`"),
        (
            "version 7",
            "version seven",
            "line 2: expected `version` and its value; write version a number",
        ),
        ("expires 1970", "expires 1969", "line 4: it expires before it was made"),
        ("section large\n", "", "line 5: an entry before the first section; write section NAME"),
        ("section small", "section large", "line 14: a second section `large`"),
        (
            "section small\n203.0.113.0/24 bbr\n",
            "",
            "it has no section `small`, for which a rule asks",
        ),
        (
            "PE bbr",
            "PE bbr2",
            "it has the arm `bbr2`, which the policy does not; write [table.arm.bbr2]",
        ),
        ("PE bbr", "PE", "line 7: `PE` is not an entry; write NETWORK ARM"),
        ("PE bbr", "Peru bbr", "line 7: `Peru` is not a network, AS, country or *"),
        ("PE bbr", "203.0.113.7/24 bbr", "host bits are set: write 203.0.113.0/24"),
        ("PE bbr", "AS64500 control", "line 8: `AS64500` is there twice in the section `large`"),
        ("PE bbr", "::ffff:203.0.113.0/120 bbr", "`203.0.113.0/24` is there twice"),
    ];
    for (old, new, expected) in cases {
        assert!(BODY.contains(old), "{old}");
        let mut policy = policy(POLICY);
        let before = policy.fingerprint();
        let text = finished_table(&BODY.replacen(old, new, 1));
        let error = policy.take_table(text.as_bytes()).expect_err(expected).to_string();
        assert!(error.contains(expected), "{error}");
        assert_eq!(policy.fingerprint(), before);
        assert_eq!(decided(&policy, &large("203.0.113.9", 1, "PE")).0, None, "nothing was taken");
    }
}

/// Cut anywhere, or with any byte changed, a table is refused; the active one stays.
#[test]
fn damaged_tables_are_refused() {
    let text = finished_table(BODY).into_bytes();
    let mut policy = with_table();
    for at in 0..text.len() {
        assert!(policy.take_table(&text[..at]).is_err(), "cut at {at}");
        let mut damaged = text.clone();
        damaged[at] ^= 1;
        assert!(policy.take_table(&damaged).is_err(), "changed at {at}");
    }
    assert_eq!(decided(&policy, &large("203.0.113.9", 1, "DE")).2, "bbr");
}
