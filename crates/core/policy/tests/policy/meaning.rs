//! The semantics of rules.

use uncork_policy::{By, EcnMode, Fact, Facts, InitialWindow, Policy, UnixTime, When};
use uncork_testkit::assert_message;
use uncork_units::ByteCount;

use crate::common::{EXAMPLE, NO_HEADERS, policy, request};

/// A condition, a change to the request that makes it match, and one that makes it fail.
type Case = (&'static str, fn(&mut Facts<'_>), fn(&mut Facts<'_>));

const CASES: &[Case] = &[
    (r#"listener = "Public""#, |_| {}, |facts| facts.listener = Fact::Known("internal")),
    (r#"listener = ["a", "pub*"]"#, |_| {}, |facts| facts.listener = Fact::Known("xpublic")),
    (
        r#"client = "203.0.113.0/24""#,
        |_| {},
        |facts| {
            facts.client = Fact::Known("203.0.112.9".parse().expect("an address"));
        },
    ),
    (
        r#"client = ["2001:db8::/32", "203.0.113.9"]"#,
        |facts| facts.client = Fact::Known("::ffff:203.0.113.9".parse().expect("an address")),
        |facts| facts.client = Fact::Known("203.0.113.8".parse().expect("an address")),
    ),
    (r#"asn = ["AS64999", "AS1"]"#, |_| {}, |facts| facts.asn = Fact::Absent),
    (r#"asn = "AS64999""#, |_| {}, |facts| facts.asn = Fact::Known(1)),
    (
        r#"country = ["PE", "DE"]"#,
        |_| {},
        |facts| {
            facts.country = Fact::Known("AT".parse().expect("a country"));
        },
    ),
    // 1970 began on a Thursday.
    (
        r#"time = { days = "thu" }"#,
        |_| {},
        |facts| {
            facts.accepted = Fact::Known(UnixTime(86_400));
        },
    ),
    (
        r#"time = { from = "00:00", to = "00:01" }"#,
        |_| {},
        |facts| {
            facts.accepted = Fact::Known(UnixTime(60));
        },
    ),
    (
        r#"time = { from = "23:00", to = "24:00", utc_offset = "-00:30" }"#,
        |_| {},
        |facts| {
            facts.accepted = Fact::Known(UnixTime(1800));
        },
    ),
    (
        "time = { since = 1970-01-01T01:00:00+01:00 }",
        |_| {},
        |facts| {
            facts.accepted = Fact::Known(UnixTime(-1));
        },
    ),
    (
        r#"time = { until = "1970-01-01T00:00:01Z" }"#,
        |_| {},
        |facts| {
            facts.accepted = Fact::Known(UnixTime(1));
        },
    ),
    (r#"sni = "*.example""#, |_| {}, |facts| facts.sni = Fact::Absent),
    (
        r#"host = "*-bbr*""#,
        |facts| facts.host = Fact::Known("Audio-fa-BBR.example.com:8443"),
        |_| {},
    ),
    (r#"host = "media.example""#, |_| {}, |facts| facts.host = Fact::Known("media.example.com")),
    (r#"path = "/*.html""#, |_| {}, |facts| facts.path = Fact::Known("/a/index.html")),
    (
        r#"path = ["/b", "/**.html"]"#,
        |facts| facts.path = Fact::Known("/a/i.html"),
        |facts| {
            facts.path = Fact::Known("/a/i.htm");
        },
    ),
    (r#"query = { bbr = "" }"#, |facts| facts.query = Fact::Known("x=1&bbr"), |_| {}),
    (
        r#"query = { bbr = ["1", "2"] }"#,
        |facts| facts.query = Fact::Known("bbr=2"),
        |facts| {
            facts.query = Fact::Known("bbr=3");
        },
    ),
    (
        r#"header = { X-Client = "ios/*" }"#,
        |facts| facts.headers = Fact::Known(&[("X-CLIENT", "ios/17")]),
        |facts| facts.headers = Fact::Known(&[("X-CLIENT", "iOS/17")]),
    ),
    (
        r#"cookie = { beta = "*", uid = "7" }"#,
        |facts| facts.headers = Fact::Known(&[("cookie", "uid=7; beta=")]),
        |facts| facts.headers = Fact::Known(&[("cookie", "beta=1")]),
    ),
    (
        r#"size = { min = "5kB" }"#,
        |_| {},
        |facts| {
            facts.size = Fact::Known(ByteCount::new(4999));
        },
    ),
    (
        r#"size = { below = "5001B" }"#,
        |_| {},
        |facts| {
            facts.size = Fact::Known(ByteCount::new(5001));
        },
    ),
];

#[test]
fn each_condition_matches_and_fails_as_documented() {
    for (condition, holds, fails) in CASES {
        let policy = policy(&format!("[[rule]]\n{condition}\nuse = {{ quic = \"bbr3\" }}\n"));
        let mut facts = request(&NO_HEADERS);
        holds(&mut facts);
        let decision = policy.decide(&facts);
        assert_eq!(decision.by, By::Rule { index: 0, name: None }, "{condition}");
        assert_eq!(decision.settings.quic.to_string(), "bbr3");
        let mut facts = request(&NO_HEADERS);
        fails(&mut facts);
        assert_eq!(policy.decide(&facts).by, By::Default, "{condition}");
        let nothing = policy.decide(&Facts::default());
        assert_eq!((nothing.by, nothing.is_final), (By::Default, false), "{condition}");
    }
}

/// `if (req.http.x-original-host == "audio-fa-bbr.spotify.com" && client.requests == 1)`
#[test]
fn host_name_rule_has_three_lines() {
    const RULE: &str = "[[rule]]\nhost = \"*-bbr*\"\nuse = { quic = \"bbr3\", tcp = \"bbr\" }\n";
    assert_eq!(RULE.lines().count(), 3);
    let policy = policy(RULE);
    assert_eq!(policy.when(), When::Once);
    let mut facts = request(&NO_HEADERS);
    facts.host = Fact::Unknown;
    let tentative = policy.decide(&facts);
    assert_eq!((tentative.by, tentative.is_final), (By::Default, false));
    assert_eq!(tentative.settings.quic.to_string(), "cubic");
    facts.host = Fact::Known("audio-fa-bbr.spotify.com");
    let decision = policy.decide(&facts);
    assert!(decision.is_final);
    assert_eq!(decision.settings.tcp.as_deref(), Some("bbr"));
    facts.host = Fact::Known("audio-fa.spotify.com");
    let decision = policy.decide(&facts);
    assert_eq!((decision.by, decision.is_final), (By::Default, true));
    assert_eq!(decision.settings.tcp, None);
}

#[test]
fn empty_policy_finally_decides_for_the_default() {
    let empty = policy("");
    let decision = empty.decide(&Facts::default());
    assert_eq!((decision.by, decision.is_final, decision.experiment), (By::Default, true, None));
    assert_message!("default", decision.settings);
}

#[test]
fn omitted_settings_come_from_the_default() {
    let policy = policy(
        "[default]\nquic = \"reno\"\ntcp = \"htcp\"\npacing_cap = \"5mbit\"\n\
         [[rule]]\nsni = \"*\"\nuse = { quic = \"bbr3\", initial_window = \"32KiB\" }\n",
    );
    let settings = policy.decide(&request(&NO_HEADERS)).settings;
    assert_eq!(settings.initial_window, Some(InitialWindow::Bytes(ByteCount::new(32_768))));
    assert_message!("all", settings);
}

#[test]
fn ecn_is_the_controllers_unless_chosen_and_l4s_needs_one_for_it() {
    let quic_ecn = |text: &str| policy(text).decide(&Facts::default()).settings.quic_ecn();
    for (text, expected) in [
        ("[default]\nquic = \"cubic\"", EcnMode::Classic),
        ("[default]\nquic = \"prague\"", EcnMode::L4s),
        ("[default]\nquic = \"prague\"\necn = \"classic\"", EcnMode::Classic),
        ("[default]\nquic = \"bbr3\"\necn = \"none\"", EcnMode::None),
        // Over QUIC the controller cannot answer the marks of L4S.
        ("[default]\ntcp = \"uncork_prague\"\necn = \"l4s\"", EcnMode::Classic),
    ] {
        assert_eq!(quic_ecn(text), expected, "{text}");
    }
}

#[test]
fn initial_windows_up_to_the_maximum_are_read_with_their_rates() {
    for (max, window) in [("", "64p"), ("", "96kB"), ("max_initial_window = \"1000p\"\n", "1000p")]
    {
        let policy = policy(&format!("{max}[default]\ninitial_window = \"{window}\"\n"));
        let settings = policy.decide(&Facts::default()).settings;
        assert_eq!(settings.initial_window, Some(window.parse().expect("a window")), "{window}");
    }
    let burst = policy("[default]\ninitial_window = \"20p\"\ninitial_rate = \"burst\"\n");
    assert_message!("burst", burst.decide(&Facts::default()).settings);
    let paced = policy("[default]\ninitial_window = \"20p\"\ninitial_rate = \"20mbit\"\n");
    assert_message!("paced", paced.decide(&Facts::default()).settings);
    assert_message!("warning", paced.window_warning().expect("a warning"));
    assert_eq!(policy("").window_warning(), None);
}

#[test]
fn the_first_matching_rule_decides() {
    let example = policy(EXAMPLE);
    assert_eq!(example.when(), When::EachRequest);
    let mut facts = request(&NO_HEADERS);
    (facts.host, facts.path) = (Fact::Known("x-bbr.example"), Fact::Known("/audio/1"));
    facts.size = Fact::Known(ByteCount::new(2_000_000));
    let name = |policy: &Policy, facts: &Facts<'_>| match policy.decide(facts).by {
        By::Rule { index, .. } => index,
        By::Default => usize::MAX,
    };
    assert_eq!(name(&example, &facts), 4);
    facts.sni = Fact::Known("a.cdn.example");
    assert_eq!(name(&example, &facts), 3);
    (facts.sni, facts.host) = (Fact::Absent, Fact::Absent);
    assert_eq!(name(&example, &facts), 5);
}

#[test]
fn a_policy_reports_what_it_needs() {
    let example = policy(EXAMPLE);
    assert!(example.asks_origin());
    assert!(!policy("").asks_origin());
    assert_eq!(example.rules(), 8);
    assert_eq!(example.summary(), "8 rules, 2 experiments of 3 arms");
    assert_eq!(policy("").summary(), "0 rules");
    let tcp: Vec<_> = example.settings().filter_map(|it| it.tcp.as_deref()).collect();
    assert_eq!(tcp.iter().filter(|name| **name == "bbr").count(), 3);
    let arms: Vec<_> = example.arms().collect();
    assert_eq!(arms, [("holdback", "cubic"), ("fleet", "control"), ("fleet", "bbr")]);
    assert_ne!(example.fingerprint(), policy("").fingerprint());
    assert_eq!(example.fingerprint(), policy(EXAMPLE).fingerprint());
    assert_eq!(example.name(), "test");
}

#[test]
fn facts_missing_in_a_complete_request_are_absent() {
    let example = policy(EXAMPLE);
    let all = request(&NO_HEADERS);
    let mut facts = Facts { sni: Fact::Unknown, size: Fact::Unknown, ..all };
    facts.path = Fact::Unknown;
    assert!(!example.decide(&facts).is_final);
    let whole = facts.with_whole_request();
    assert_eq!((whole.sni, whole.path, whole.size), (Fact::Absent, Fact::Absent, Fact::Absent));
    assert_eq!((whole.host, whole.client), (all.host, all.client));
    assert!(example.decide(&whole).is_final);
}

#[test]
fn conditions_that_never_match_are_reported() {
    let policy = policy(
        "[[rule]]\nlistener = \"in*\"\nuse = { tcp = \"bbr\" }\n\
         [[rule]]\ncountry = \"PE\"\nuse = { tcp = \"bbr\" }\n",
    );
    assert!(policy.warnings(Some(&["public", "internal"]), true).is_empty());
    let warnings = policy.warnings(Some(&["public", "extern"]), false);
    assert_message!("listener and country", warnings.join("\n"));
}

#[test]
fn rules_that_can_never_decide_are_reported_with_the_rule_before() {
    let use_it = "use = { tcp = \"bbr\" }\n";
    let rules = |rules: &[&str]| {
        let rules = rules.iter().map(|rule| format!("[[rule]]\n{rule}\n{use_it}"));
        policy(&rules.collect::<String>()).warnings(None, true)
    };
    for (name, pair) in [
        ("networks", ["client = \"0.0.0.0/0\"", "client = [\"10.0.0.0/8\", \"192.0.2.1\"]"]),
        ("mapped", ["client = \"10.0.0.0/8\"", "client = \"::ffff:10.0.0.0/104\""]),
        ("equal", ["host = \"a\"", "host = \"A\""]),
        ("more conditions", ["host = [\"a\", \"b\"]", "host = \"b\"\nclient = \"::/0\""]),
        (
            "places",
            ["country = [\"CL\", \"PE\"]\nasn = \"AS1\"", "asn = \"AS1\"\ncountry = \"PE\""],
        ),
        ("sizes", ["size = { min = \"1MB\" }", "size = { min = \"2MB\", below = \"3MB\" }"]),
        ("headers", ["header = { A = [\"x\", \"y*\"] }", "header = { a = \"y*\" }"]),
        (
            "times",
            [
                "time = { until = 2026-12-02T00:00:00Z }",
                "time = { until = 2026-12-01T00:00:00Z, days = [\"mon\"] }",
            ],
        ),
    ] {
        let [warning] = rules(&pair).try_into().unwrap_or_else(|it| panic!("{name}: {it:?}"));
        let line = 4 + pair[0].matches('\n').count();
        let first = format!("test:{line}: this rule never decides: the rule in line 1 ");
        assert!(warning.starts_with(&first), "{name}: {warning}");
        let turned = rules(&[pair[1], pair[0]]);
        let is_mutual = ["mapped", "equal"].contains(&name);
        assert_eq!(turned.len(), usize::from(is_mutual), "{name}: {turned:?}");
    }
    assert_message!("shadowed", rules(&["host = \"a\"", "host = \"a\""]).join("\n"));
}

/// A wrong warning makes operators remove a rule that decides.
#[test]
fn rules_that_may_decide_are_not_reported() {
    let text = "[experiment.e]\nunit = \"prefix\"\nshare = \"50%\"\n[experiment.e.arm.a]\nweight = 1\n\
        [[rule]]\nexperiment = \"e\"\n[[rule]]\nhost = \"a\"\nuse = { tcp = \"bbr\" }\n";
    assert_eq!(policy(text).warnings(None, true), [""; 0]);
    for (first, second) in [
        ("client = \"::/0\"", "client = \"10.0.0.0/8\""),
        ("host = \"a\"\npath = \"/x\"", "host = \"a\""),
        ("host = \"a\"", "sni = \"a\""),
        ("cookie = { a = \"1\" }", "cookie = { A = \"1\" }"),
        ("time = { days = [\"mon\"] }", "time = { days = [\"tue\"] }"),
        ("size = { min = \"2MB\" }", "size = { min = \"1MB\" }"),
    ] {
        let text = format!(
            "[[rule]]\n{first}\nuse = {{ tcp = \"bbr\" }}\n[[rule]]\n{second}\nuse = {{ tcp = \"reno\" }}\n"
        );
        assert_eq!(policy(&text).warnings(None, true), [""; 0], "{first} then {second}");
    }
}

#[test]
fn a_rule_until_a_time_in_the_past_is_reported() {
    let policy =
        policy("[[rule]]\ntime = { until = 2026-12-01T00:00:00Z }\nuse = { tcp = \"bbr\" }\n");
    let until: UnixTime = "2026-12-01T00:00:00Z".parse().expect("a time");
    assert_eq!(policy.expired_rules(UnixTime(until.0 - 1)), [""; 0]);
    assert_message!("until", policy.expired_rules(until).join("\n"));
}

#[test]
fn ports_without_a_name_have_their_number_as_name() {
    let policy = policy(
        "[[rule]]\nlistener = \"we*\"\nuse = { tcp = \"bbr\" }\n\
         [[rule]]\nlistener = \"443\"\nuse = { tcp = \"bbr\" }\n",
    );
    let named = |name: &str, port| policy.warnings_by_port(&[(name.to_owned(), port)], true);
    assert_message!("no names", policy.warnings_by_port(&[], true).join("\n"));
    assert!(named("web", 80).is_empty());
    assert_message!("web", named("web", 443).join("\n"));
}
