//! Tests of choices, without sockets.

use std::net::IpAddr;
use std::sync::Arc;

use http::Request;
use proptest::prelude::*;
use uncork_policy::{By, Fact, Facts, Origin, Origins, Policy, Settings, UnixTime};
use uncork_units::ByteCount;

use super::{Choice, Chooser, RequestFacts};
use arc_swap::ArcSwap;

const NOW: UnixTime = UnixTime(1_800_000_000);

/// The active policy, and a listener called `public` that uses it.
struct ActivePolicy(Arc<ArcSwap<Policy>>);

impl ActivePolicy {
    fn new(text: &str) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(parsed(text))))
    }

    fn set(&self, text: &str) {
        self.0.store(Arc::new(parsed(text)));
    }

    fn accept(&self) -> Choice {
        self.accept_from("203.0.113.9", "public")
    }

    fn accept_from(&self, client: &str, listener: &str) -> Choice {
        let origins = Arc::new(ArcSwap::from_pointee(Origins::new()));
        let chooser = Chooser::by_policy(listener, Arc::clone(&self.0), origins);
        chooser.accept(client.parse().expect("an address"), NOW)
    }
}

fn parsed(text: &str) -> Policy {
    Policy::parse("test.toml", text).expect("a policy")
}

fn get(url: &str) -> Request<()> {
    Request::get(url).body(()).expect("a request")
}

/// Requests a file of 3 MB from this URL.
fn request(choice: &mut Choice, url: &str) {
    let request = get(url);
    choice.request(&RequestFacts::new(&request, Some(request.uri().path()), Some(3_000_000)));
}

fn tcp(choice: &Choice) -> &str {
    choice.chosen().settings.tcp.as_deref().unwrap_or("none")
}

const BY_HOST: &str = "\
[default]
tcp = \"cubic\"
[[rule]]
host = \"*-bbr*\"
use = { tcp = \"bbr\" }
";

#[test]
fn the_first_request_decides_once() {
    let policy = ActivePolicy::new(BY_HOST);
    let mut choice = policy.accept();
    assert_eq!((tcp(&choice), choice.chosen().group.as_str()), ("cubic", "default"));
    choice.server_name(Some("fa-bbr.example"));
    assert_eq!(tcp(&choice), "cubic", "the handshake is not the request");
    request(&mut choice, "http://fa-bbr.example/1");
    assert_eq!((tcp(&choice), choice.chosen().group.as_str()), ("bbr", "rule 1"));
    let before = Arc::clone(choice.chosen());
    request(&mut choice, "http://fa.example/2");
    assert!(Arc::ptr_eq(&before, choice.chosen()), "nothing is decided again");
}

#[test]
fn each_request_policies_decide_per_request() {
    let policy = ActivePolicy::new(&format!("decide = \"each_request\"\n{BY_HOST}"));
    let mut choice = policy.accept();
    for (url, wanted) in [
        ("http://a-bbr/", "bbr"),
        ("http://a/", "cubic"),
        ("http://a/", "cubic"),
        ("http://b-bbr/", "bbr"),
    ] {
        request(&mut choice, url);
        assert_eq!(tcp(&choice), wanted);
    }
    let before = Arc::clone(choice.chosen());
    request(&mut choice, "http://b-bbr/2");
    assert!(Arc::ptr_eq(&before, choice.chosen()), "the same decision is the same thing");
}

/// A request on an open connection allocates no memory, unless it changes the choice.
#[test]
fn a_request_that_changes_nothing_allocates_nothing() {
    for decide in ["once", "each_request"] {
        let policy = ActivePolicy::new(&format!("decide = \"{decide}\"\n{BY_HOST}"));
        let mut choice = policy.accept();
        let asked = get("http://a-bbr.example/audio/1?x=1");
        let mut again =
            || choice.request(&RequestFacts::new(&asked, Some("/audio/1"), Some(1_000)));
        assert!(allocation_counter::measure(&mut again).count_total > 0, "the first one decides");
        assert_eq!(allocation_counter::measure(&mut again).count_total, 0, "{decide}");
    }
}

#[test]
fn the_server_name_decides_before_the_request() {
    let policy = ActivePolicy::new("[[rule]]\nsni = \"*.example\"\nuse = { tcp = \"bbr\" }");
    let mut choice = policy.accept();
    assert_eq!(tcp(&choice), "none");
    choice.server_name(Some("a.example"));
    assert_eq!(tcp(&choice), "bbr");
    let mut nameless = policy.accept();
    nameless.server_name(None);
    assert_eq!(tcp(&nameless), "none");
}

#[test]
fn rules_on_known_facts_decide_at_accept() {
    let text = "[[rule]]\nlistener = \"internal\"\nuse = { tcp = \"cubic\" }\n\
        [[rule]]\nclient = \"10.0.0.0/8\"\nuse = { tcp = \"bbr\" }";
    let policy = ActivePolicy::new(text);
    assert_eq!(tcp(&policy.accept_from("10.1.2.3", "internal")), "cubic");
    assert_eq!(tcp(&policy.accept_from("::ffff:10.1.2.3", "public")), "bbr");
    assert_eq!(tcp(&policy.accept_from("11.1.2.3", "public")), "none");
}

/// A connection keeps its policy if that decides once.
#[test]
fn open_connections_keep_a_policy_that_decides_once() {
    let policy = ActivePolicy::new(BY_HOST);
    let mut choice = policy.accept();
    let old = parsed(BY_HOST).fingerprint();
    policy.set("[default]\ntcp = \"reno\"");
    request(&mut choice, "http://a-bbr/");
    let recorded = choice.chosen().recorded(None).expect("a policy");
    assert_eq!((tcp(&choice), recorded.policy), ("bbr", format!("{old:016x}").into()));
    assert_eq!(tcp(&policy.accept()), "reno");
    assert_eq!(Arc::strong_count(&policy.0), 1, "the connection has dropped it");
}

#[test]
fn each_request_uses_the_active_policy() {
    let policy = ActivePolicy::new("decide = \"each_request\"\n[default]\ntcp = \"bbr\"");
    let mut choice = policy.accept();
    request(&mut choice, "http://a/");
    policy.set("[default]\ntcp = \"reno\"");
    choice.server_name(None);
    assert_eq!(tcp(&choice), "bbr", "only requests change it");
    request(&mut choice, "http://a/");
    assert_eq!(tcp(&choice), "reno");
    policy.set("decide = \"each_request\"\n[default]\ntcp = \"cubic\"");
    request(&mut choice, "http://a/");
    assert_eq!(tcp(&choice), "reno", "the one before decides once");
}

#[test]
fn a_listener_can_have_fixed_settings() {
    let settings = Settings { tcp: Some("bbr".into()), ..Settings::default() };
    let origins = Arc::new(ArcSwap::from_pointee(Origins::new()));
    let chooser = Chooser::fixed("bbr", settings, origins);
    let mut choice = chooser.accept(IpAddr::from([127, 0, 0, 1]), NOW);
    choice.server_name(Some("a"));
    request(&mut choice, "http://a/");
    assert_eq!((tcp(&choice), choice.chosen().group.as_str()), ("bbr", "bbr"));
    assert_eq!((choice.chosen().recorded(None), choice.chosen().arm()), (None, None));
}

#[test]
fn records_contain_the_arm_and_its_rule() {
    let text = "[experiment.may]\nunit = \"prefix\"\nshare = \"100%\"\n\
        [experiment.may.arm.a]\ntcp = \"cubic\"\n[experiment.may.arm.b]\ntcp = \"bbr\"\nweight = 3\n\
        [[rule]]\nname = \"all\"\nexperiment = \"may\"\nlistener = \"*\"";
    let policy = ActivePolicy::new(text);
    let mut seen = [false; 2];
    for n in 0..100 {
        let choice = policy.accept_from(&format!("10.1.{n}.1"), "public");
        let neighbour = policy.accept_from(&format!("10.1.{n}.99"), "public");
        let recorded = choice.chosen().recorded(Some("x")).expect("a policy");
        assert_eq!((recorded.rule.as_str(), recorded.cc.as_deref()), ("all", Some("x")));
        let arm = recorded.arm.expect("an arm");
        assert_eq!(Some(&arm), neighbour.chosen().recorded(None).expect("a policy").arm.as_ref());
        let is_b = arm.arm == "b";
        assert_eq!(tcp(&choice), if is_b { "bbr" } else { "cubic" });
        assert!((arm.propensity - if is_b { 0.75 } else { 0.25 }).abs() < 1e-9);
        assert_eq!(choice.chosen().arm(), Some(format!("may/{}", arm.arm).as_str()));
        assert_eq!(choice.chosen().group, format!("may/{}", arm.arm));
        seen[usize::from(is_b)] = true;
    }
    assert_eq!(seen, [true; 2]);
}

#[test]
fn the_host_of_the_target_takes_precedence_over_the_header() {
    let policy = ActivePolicy::new(BY_HOST);
    for (url, header, wanted) in [
        ("/1", Some("a-bbr.example:8080"), "bbr"),
        ("http://a.example/", Some("a-bbr.example"), "cubic"),
        ("http://user@a-bbr.example:80/", None, "bbr"),
        ("/", None, "cubic"),
    ] {
        let mut choice = policy.accept();
        let mut request = get(url);
        if let Some(host) = header {
            request.headers_mut().insert("host", host.parse().expect("a value"));
        }
        choice.request(&RequestFacts::new(&request, None, None));
        assert_eq!(tcp(&choice), wanted, "{url} {header:?}");
    }
}

const EXPERIMENT: &str = "\
[experiment.e]
unit = \"cookie:uid\"
share = \"50%\"
[experiment.e.arm.a]
tcp = \"reno\"
";

/// Policies with every condition that a rule can have, in random order, and with different settings
/// for each rule.
fn policies() -> impl Strategy<Value = Policy> {
    let condition = prop::sample::select(vec![
        "listener = \"public\"",
        "client = \"203.0.113.0/24\"",
        "time = { until = 2030-01-01T00:00:00Z }",
        "country = \"PE\"",
        "sni = \"*.example\"",
        "host = \"a.example\"",
        "path = \"/audio/*\"",
        "query = { bbr = \"1\" }",
        "header = { x-client = \"ios/*\" }",
        "cookie = { uid = \"7\" }",
        "size = { min = \"1MB\" }",
    ]);
    let rule = (prop::collection::hash_set(condition, 1..3), any::<bool>());
    (prop::collection::vec(rule, 0..6), any::<bool>()).prop_map(|(rules, each)| {
        let mut text = String::new();
        if each {
            text.push_str("decide = \"each_request\"\n");
        }
        if rules.iter().any(|(_, experiment)| *experiment) {
            text.push_str(EXPERIMENT);
        }
        for (index, (conditions, experiment)) in rules.iter().enumerate() {
            let conditions: Vec<_> = conditions.iter().copied().collect();
            let gives = match experiment {
                true => "experiment = \"e\"".to_owned(),
                false => format!("use = {{ tcp = \"rule{index}\" }}"),
            };
            text.extend(["[[rule]]\n", &conditions.join("\n"), "\n", &gives, "\n"]);
        }
        parsed(&text)
    })
}

proptest! {
    /// The server's choice equals the output of `uncork policy explain` for the same facts.
    #[test]
    fn choices_equal_policy_explain(
        policy in policies(),
        client in prop::sample::select(vec!["203.0.113.9", "10.0.0.1"]),
        listener in prop::sample::select(vec!["public", "internal"]),
        sni in prop::option::of(prop::sample::select(vec!["cdn.example", "b.test"])),
        host in prop::sample::select(vec!["a.example", "b.example"]),
        path in prop::sample::select(vec!["/audio/1", "/audio/1/2"]),
        query in prop::option::of(prop::sample::select(vec!["bbr=1", "x=2"])),
        fields in prop::collection::vec(
            prop::sample::select(vec![("x-client", "ios/1"), ("x-client", "web"), ("cookie", "uid=7")]),
            0..3,
        ),
        size in prop::option::of(prop::sample::select(vec![5_u64, 5_000_000])),
    ) {
        let query_part = query.map_or(String::new(), |query| format!("?{query}"));
        let mut asked = get(&format!("https://{host}{path}{query_part}"));
        for (name, value) in &fields {
            asked.headers_mut().append(*name, value.parse().expect("a value"));
        }
        let given: Vec<(&str, &str)> = fields;
        let client: IpAddr = client.parse().expect("an address");
        let facts = Facts {
            sni: Fact::known_or_absent(sni),
            host: Fact::Known(host),
            path: Fact::Known(path),
            query: Fact::known_or_absent(query),
            headers: Fact::Known(&given),
            size: Fact::known_or_absent(size.map(ByteCount::new)),
            ..Facts::at_accept(listener, client, NOW, Origin::default())
        };
        let explained = policy.explain(&facts.with_whole_request());
        let active = ActivePolicy(Arc::new(ArcSwap::from_pointee(policy.clone())));
        let mut choice = active.accept_from(&client.to_string(), listener);
        choice.server_name(sni);
        for _ in 0..2 {
            choice.request(&RequestFacts::new(&asked, Some(path), size));
            let chosen = choice.chosen();
            let recorded = chosen.recorded(None).expect("a policy");
            prop_assert_eq!(&chosen.settings, explained.decision.settings);
            let rule = match explained.decision.by {
                By::Default => "default".to_owned(),
                By::Rule { index, .. } => format!("rule {}", index + 1),
            };
            prop_assert_eq!(recorded.rule, rule);
            prop_assert_eq!(
                recorded.arm.map(|arm| (arm.unit, arm.bucket)),
                explained.decision.experiment.map(|arm| (arm.unit, arm.bucket))
            );
        }
    }
}
