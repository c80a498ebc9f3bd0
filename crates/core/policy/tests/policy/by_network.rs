//! Policies by network decide as the policies that they were made of.

use std::collections::HashMap;
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;
use uncork_policy::{
    Facts, FlatError, NetworkDecision, NetworksAsked, Origin, Origins, Policy, Prefix, UnixTime,
};
use uncork_testkit::{assert_message, finished_table};

use crate::common::policy;
use crate::flat::{DAY, octet, origins, rule, whole};

const LEARNED: &str = r#"
key = "000102030405060708090a0b0c0d0e0f"
[default]
tcp = "cubic"
[experiment.holdback]
unit = "prefix"
share = "1%"
[experiment.holdback.arm.control]
tcp = "cubic"
[experiment.explore]
unit = "prefix"
share = "30%"
[experiment.explore.arm.control]
tcp = "cubic"
[experiment.explore.arm.bbr]
tcp = "bbr"
[table]
file = "networks.table"
[table.arm.control]
tcp = "cubic"
[table.arm.bbr]
tcp = "bbr"
[[rule]]
experiment = "holdback"
[[rule]]
experiment = "explore"
[[rule]]
table = "large"
"#;

fn learned(entries: &str) -> Policy {
    let head =
        "uncork-table 1\nversion 7\nmade 1970-01-01T00:00:00Z\nexpires 1970-01-08T00:00:00Z\n";
    let mut policy = policy(LEARNED);
    policy
        .take_table(finished_table(&format!("{head}section large\n{entries}")).as_bytes())
        .expect("a table");
    policy
}

fn asked<'a>(origins: &'a Origins, within: &'a [Prefix], now: i64) -> NetworksAsked<'a> {
    NetworksAsked { origins, now: UnixTime(now), within, also: &[] }
}

fn prefix(text: &str) -> Prefix {
    text.parse().expect(text)
}

/// Decisions by network, to look up the longest.
struct Longest(HashMap<(IpAddr, u8), Option<String>>);

impl Longest {
    fn new(decisions: Vec<NetworkDecision>) -> Self {
        let count = decisions.len();
        let key = |network: Prefix| (network.address(), network.bits());
        let all = decisions.into_iter().map(|one| (key(one.network), one.tcp));
        let all: HashMap<_, _> = all.collect();
        assert_eq!(all.len(), count, "a network comes twice");
        Self(all)
    }

    fn of(&self, client: IpAddr) -> Option<&Option<String>> {
        let longest = if client.is_ipv4() { 32 } else { 128 };
        (0..=longest).rev().find_map(|bits| {
            let network = Prefix::of(client, bits);
            self.0.get(&(network.address(), bits))
        })
    }
}

fn decided(policy: &Policy, client: IpAddr, now: i64, origin: Origin) -> Option<String> {
    let decision = policy.decide(&Facts::at_accept("443", client, UnixTime(now), origin));
    assert!(decision.is_final);
    decision.settings.tcp.as_deref().map(str::to_owned)
}

/// Without what a route does not know.
fn known(rule: &str) -> String {
    let lines = rule.lines().filter(|it| !it.starts_with("listener") && !it.starts_with("time"));
    let lines: Vec<&str> = lines.collect();
    // A rule with settings needs a condition.
    let lines = if lines.len() < 3 { &["[[rule]]", "experiment = \"e\""] } else { &*lines };
    lines.join("\n") + "\n"
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_client_gets_what_the_policy_says(
        rules in prop::collection::vec(rule(), 1..8),
        share in 1_u8..=100,
        now in 0_i64..14 * DAY,
        clients in prop::collection::vec((any::<[bool; 3]>(), any::<u16>()), 50),
    ) {
        let rules: Vec<String> = rules.iter().map(|rule| known(rule)).collect();
        let (policy, origins) = (whole(&rules, share), origins());
        let within = ["10.1.0.0/16", "10.128.0.0/20", "10.128.1.128/25", "2001:db8::/44", "2001:db8:80::/64"];
        let within = within.map(prefix);
        let also = ["10.1.1.64/26", "10.1.128.0/18", "12.0.0.0/8", "2001:db8::/46"].map(prefix);
        let asked = NetworksAsked { also: &also, ..asked(&origins, &within, now) };
        let longest = Longest::new(policy.by_network(&asked).expect("it can be dealt"));
        for network in &also {
            let is_inside = network.address() != prefix("12.0.0.0/8").address();
            prop_assert_eq!(longest.0.contains_key(&(network.address(), network.bits())), is_inside);
        }
        for ([one, two, three], host) in clients {
            let [one, two] = [one, two].map(octet);
            let v4 = IpAddr::from([10, one, two, (host & 255) as u8]);
            let near = [0x2001, 0xdb8, u16::from(one) & 128, u16::from(two), host, 0, 0, 1_u16];
            let client = if three { v4 } else { near.into() };
            let is_inside = within.iter().any(|it| Prefix::of(client, it.bits()) == *it);
            let found = longest.of(client);
            prop_assert_eq!(found.is_some(), is_inside, "{}", client);
            if let Some(found) = found {
                let expected = decided(&policy, client, now, origins.of(client));
                prop_assert_eq!(found, &expected, "{} at {}", client, now);
            }
        }
    }
}

/// A learned policy, ten thousand networks of all widths, active and expired.
#[test]
fn a_learned_policy_decides_alike_in_ten_thousand_networks() {
    let (mut entries, mut clients) = (String::new(), Vec::new());
    let mut random = 1_u64;
    let mut draw = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) % below
    };
    for index in 0..10_000_u32 {
        let arm = if draw(2) == 0 { "bbr" } else { "control" };
        let host = draw(256) as u32;
        let (network, client): (String, IpAddr) = match index % 10 {
            0 => {
                let address = 0x2001_0db8_u128 << 96 | u128::from(index) << 80;
                let client = address | u128::from(draw(1 << 30)) << 20;
                (format!("{}/48", Ipv6Addr::from_bits(address)), Ipv6Addr::from_bits(client).into())
            }
            // Wider and narrower than a unit, around and inside of the others.
            1 => (
                format!("{}/21", Ipv4Addr::from_bits(index << 8 & !0x7ff)),
                Ipv4Addr::from_bits(index << 8 | host).into(),
            ),
            2 => (
                format!("{}/26", Ipv4Addr::from_bits(index << 8)),
                Ipv4Addr::from_bits(index << 8 | host).into(),
            ),
            _ => (
                format!("{}/24", Ipv4Addr::from_bits(index << 8)),
                Ipv4Addr::from_bits(index << 8 | host).into(),
            ),
        };
        if !entries.contains(&format!("\n{network} ")) {
            writeln!(entries, "{network} {arm}").expect("a text");
        }
        clients.push(client);
    }
    let policy = learned(&entries);
    for now in [0, 30 * DAY] {
        let decisions = policy.by_network(&asked(&Origins::new(), &[], now)).expect("decisions");
        let longest = Longest::new(decisions);
        let mut by_controller: HashMap<String, u32> = HashMap::new();
        let mut outside = 0;
        for client in &clients {
            let Some(found) = longest.of(*client) else {
                outside += 1;
                continue;
            };
            assert_eq!(*found, decided(&policy, *client, now, Origin::default()), "{client}");
            *by_controller.entry(found.clone().expect("all have one")).or_default() += 1;
        }
        let bbr = if now == 0 { 4_000..6_000 } else { 1_200..1_800 };
        assert!(bbr.contains(&by_controller["bbr"]), "{by_controller:?}");
        assert!(outside < 1_000, "{outside} clients in no network");
    }
}

fn refused(policy: &Policy, within: &[Prefix]) -> String {
    let error: FlatError =
        policy.by_network(&asked(&Origins::new(), within, 0)).expect_err("it is refused");
    error.to_string()
}

#[test]
fn what_a_route_does_not_know_is_refused_with_its_place() {
    for (text, place) in [
        ("[[rule]]\nlistener = \"a\"\nuse = { tcp = \"bbr\" }", "test:1: `listener = a`: "),
        (
            "\n[[rule]]\ntime = { from = \"01:00\", to = \"02:00\" }\nuse = { tcp = \"bbr\" }",
            "test:2: `time = ",
        ),
        (
            "[[rule]]\nclient = \"10.0.0.0/8\"\nuse = { pacing_cap = \"1mbit\" }",
            "test:1: `pacing_cap`: ",
        ),
        ("[default]\npacing_cap = \"1mbit\"", "test: `pacing_cap` in [default]: "),
        ("[default]\ninitial_window = \"32p\"", "test: `initial_window` in [default]: "),
        (
            "[[rule]]\nclient = \"10.0.0.0/8\"\nuse = { initial_window = \"20p\", initial_rate = \"1mbit\" }",
            "test:1: `initial_rate`: ",
        ),
        ("[[rule]]\nsize = { min = \"3MB\" }\nuse = { tcp = \"bbr\" }", "test:1: `size = "),
    ] {
        let refused = refused(&policy(text), &[]);
        assert!(refused.starts_with(place), "{place}: {refused}");
        assert_message!(place, refused);
    }
}

#[test]
fn too_many_units_are_refused_and_fewer_can_be_asked_for() {
    let policy = learned("2001:d00::/24 bbr\n10.0.0.0/8 bbr\n");
    let refusal = refused(&policy, &[]);
    assert!(refusal.contains("deal 16842752 networks of /24 or /48"), "{refusal}");
    assert!(refusal.contains("16777216 of them in 2001:d00::/24"), "{refusal}");
    let origins = Origins::new();
    let within = [prefix("10.0.0.0/8")];
    let decisions = policy.by_network(&asked(&origins, &within, 0)).expect("decisions");
    assert_eq!(decisions[0].network, within[0]);
    assert_eq!(decisions[0].tcp.as_deref(), Some("bbr"));
    // 1 % and half of 30 % of its 65,536 units.
    assert!((10_000..10_900).contains(&decisions.len()), "{}", decisions.len());
}

#[test]
fn left_out_entries_are_reported() {
    let policy = learned("* bbr\nAS64500 bbr\nPE control\n10.0.0.0/24 bbr\n");
    for has_default in [false, true] {
        assert_message!(has_default, policy.left_out_by_network(has_default).join("\n"));
    }
    assert!(learned("* control\n10.0.0.0/24 bbr\n").left_out_by_network(false).is_empty());
}
