//! More facts never change a final decision.

use proptest::prelude::*;
use uncork_policy::{Asked, By, Fact, Facts, Headers, UnixTime, Verdict};
use uncork_units::ByteCount;

use crate::common::policy;

/// Conditions that match all, some or none of the requests below.
const CONDITIONS: &[&str] = &[
    "listener = \"a\"",
    "listener = \"*\"",
    "client = \"10.0.0.0/8\"",
    "client = [\"10.0.0.0/9\", \"2001:db8::/32\"]",
    "asn = \"AS1\"",
    "country = [\"PE\", \"DE\"]",
    "time = { days = [\"thu\", \"sat\"] }",
    "sni = \"*.x\"",
    "host = \"*-bbr*\"",
    "host = \"a.x\"",
    "path = \"/a/*\"",
    "path = \"**.ogg\"",
    "query = { bbr = \"1\" }",
    "header = { h = \"*\" }",
    "cookie = { uid = [\"1\", \"2\"] }",
    "size = { min = \"1kB\", below = \"2kB\" }",
];

const ACTIONS: &[&str] = &[
    "use = { quic = \"bbr3\" }",
    "use = { quic = \"reno\", tcp = \"bbr\" }",
    "experiment = \"net\"",
    "experiment = \"user\"",
];

const EXPERIMENTS: &str = "[experiment.net]\nunit = \"prefix\"\nshare = \"50%\"\n\
    [experiment.net.arm.a]\n[experiment.net.arm.b]\n\
    [experiment.user]\nunit = \"cookie:uid\"\nshare = \"50%\"\n\
    [experiment.user.arm.a]\n[experiment.user.arm.b]\n";

/// Uses every experiment, since unused ones are errors.
const LAST: &str = "[[rule]]\nlistener = \"none\"\nexperiment = \"net\"\n\
    [[rule]]\nlistener = \"none\"\nexperiment = \"user\"\n";

fn policies() -> impl Strategy<Value = String> {
    let conditions = prop::sample::subsequence(CONDITIONS, 1..4);
    let rule = (conditions, prop::sample::select(ACTIONS)).prop_map(|(conditions, action)| {
        let mut keys: Vec<&str> = Vec::new();
        let mut text = "[[rule]]\n".to_owned();
        for condition in conditions {
            let key = condition.split(' ').next().unwrap_or_default();
            if !keys.contains(&key) {
                keys.push(key);
                text.push_str(condition);
                text.push('\n');
            }
        }
        text + action + "\n"
    });
    prop::collection::vec(rule, 0..7)
        .prop_map(|rules| EXPERIMENTS.to_owned() + &rules.concat() + LAST)
}

/// Header fields of requests.
static HEADERS: [&[(&str, &str)]; 3] =
    [&[], &[("h", "1"), ("cookie", "uid=1")], &[("Cookie", "uid=2")]];

struct Fields(&'static [(&'static str, &'static str)]);

impl Headers for Fields {
    fn any(&self, name: &str, test: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        self.0.any(name, test)
    }
}

static FIELDS: [Fields; 3] = [Fields(HEADERS[0]), Fields(HEADERS[1]), Fields(HEADERS[2])];

fn of<T: Clone + std::fmt::Debug + 'static>(
    values: &'static [T],
) -> impl Strategy<Value = Fact<T>> {
    let known = prop::sample::select(values).prop_map(Fact::Known);
    prop_oneof![1 => Just(Fact::Absent), 4 => known]
}

/// Requests with all facts known.
fn requests() -> impl Strategy<Value = Facts<'static>> {
    let client = prop_oneof![
        (0_u32..4)
            .prop_map(|n| Fact::Known(std::net::IpAddr::V4((0x0a00_0001 + (n << 22)).into()))),
        Just(Fact::Known("2001:db8::1".parse().expect("an address"))),
    ];
    let place = (of(&["a", "b"]), client, of(&[1_u32, 2]), of(&["PE", "AT"]), 0_i64..5);
    let names = (of(&["a.x", "b.y"]), of(&["a.x", "q-bbr.x:80"]), of(&["/a/1.ogg", "/a/b/c"]));
    let rest = (of(&["bbr=1", "x&y"]), 0_usize..3, of(&[500_u64, 1000, 2000]));
    (place, names, rest).prop_map(|(place, (sni, host, path), (query, headers, size))| {
        let (listener, client, asn, country, day) = place;
        Facts {
            listener,
            client,
            asn,
            country: country.map(|code| code.parse().expect("a country")),
            accepted: Fact::Known(UnixTime(day * 86_400)),
            sni,
            host,
            path,
            query,
            headers: Fact::Known(&FIELDS[headers]),
            size: size.map(ByteCount::new),
        }
    })
}

/// The facts of `all` with their bits set; the others are unknown.
fn part<'a>(all: &Facts<'a>, bits: u16) -> Facts<'a> {
    fn if_bit<T>(bits: u16, bit: u32, fact: Fact<T>) -> Fact<T> {
        if bits >> bit & 1 == 1 { fact } else { Fact::Unknown }
    }
    Facts {
        listener: if_bit(bits, 0, all.listener),
        client: if_bit(bits, 1, all.client),
        asn: if_bit(bits, 2, all.asn),
        country: if_bit(bits, 3, all.country),
        accepted: if_bit(bits, 4, all.accepted),
        sni: if_bit(bits, 5, all.sni),
        host: if_bit(bits, 6, all.host),
        path: if_bit(bits, 7, all.path),
        query: if_bit(bits, 8, all.query),
        headers: if_bit(bits, 9, all.headers),
        size: if_bit(bits, 10, all.size),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn more_facts_never_change_a_final_decision(
        text in policies(),
        all in requests(),
        bits: u16,
        more: u16,
    ) {
        let policy = policy(&text);
        let (early, late) = (part(&all, bits), part(&all, bits | more));
        let (before, after) = (policy.decide(&early), policy.decide(&late));
        if before.is_final {
            prop_assert_eq!(before, after, "{}", text);
        }
        prop_assert!(policy.decide(&all).is_final, "everything is known: {}", text);
    }

    #[test]
    fn settled_conditions_stay_settled(
        text in policies(),
        all in requests(),
        bits: u16,
        more: u16,
    ) {
        let policy = policy(&text);
        let before = policy.explain(&part(&all, bits));
        let after = policy.explain(&part(&all, bits | more));
        for (before, after) in before.rules.iter().zip(&after.rules) {
            for (before, after) in before.conditions.iter().zip(&after.conditions) {
                if before.verdict != Verdict::Unknown {
                    prop_assert_eq!(before, after);
                }
            }
        }
    }

    #[test]
    fn the_explanation_matches_the_decision(
        text in policies(),
        all in requests(),
        bits: u16,
    ) {
        let policy = policy(&text);
        let facts = part(&all, bits);
        let explained = policy.explain(&facts);
        prop_assert_eq!(explained.decision, policy.decide(&facts));
        let decides = explained.rules.iter().position(|rule| rule.outcome == Asked::Decides);
        match explained.decision.by {
            By::Rule { index, .. } => prop_assert_eq!(decides, Some(index)),
            By::Default => prop_assert_eq!(decides, None),
        }
        let waits = explained.rules.iter().any(|rule| rule.outcome == Asked::Waits);
        prop_assert_eq!(explained.decision.is_final, !waits);
        for rule in explained.rules.iter().filter(|rule| rule.outcome != Asked::Never) {
            let all = |verdict| rule.conditions.iter().any(|it| it.verdict == verdict);
            let expected = match (all(Verdict::No), all(Verdict::Unknown)) {
                (true, _) => Asked::Fails,
                (false, true) => Asked::Waits,
                (false, false) => Asked::Decides,
            };
            prop_assert_eq!(rule.outcome, expected, "{}", text);
        }
        prop_assert_eq!(
            explained.text().lines().filter(|line| line.starts_with("rule ")).count(),
            explained.rules.len() + usize::from(decides.is_some())
        );
    }
}
