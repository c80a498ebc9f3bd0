//! Flat policies decide as the policies that they were made of.

use std::hash::Hasher;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;
use siphasher::sip::SipHasher24;
use uncork_policy::{
    By, Decision, Fact, Facts, Flat, FlatExperiment, FlatWindow, Origins, Outcome, Policy,
    UnixTime, slot,
};
use uncork_testkit::{assert_message, finished_table};

use crate::common::policy;
use crate::mmdb::{of_asn, of_country};

pub(crate) const DAY: i64 = 86_400;
const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// Networks around those of [`rule`], of systems and countries as in [`origins`]. It expires after a week.
const TABLE: &str = "\
uncork-table 1
version 7
made 1970-01-01T00:00:00Z
expires 1970-01-08T00:00:00Z
section some
AS64500 one
10.0.0.0/7 two
10.128.0.0/16 one
10.1.1.0/24 one
10.1.1.1/32 two
2001:db8::/32 two
2001:db8:80::/48 one
::/0 one
section all
* two
PE one
AS64500 two
10.128.1.0/24 two
";

/// What the kernel does, in Rust: only the tables are used.
fn decide(flat: &Flat, client: IpAddr, port: Option<u16>, now: i64) -> &Outcome {
    let client = mapped(client);
    let matching = flat.networks.iter().filter(|network| {
        let free = u128::MAX.checked_shr(network.bits.into()).unwrap_or(0);
        network.address.to_bits() == client.to_bits() & !free
    });
    let row = matching.max_by_key(|network| network.bits).map_or(0, |network| network.row);
    assert_eq!(flat.table.find(client.into()), row, "{client}");
    let listeners = &flat.listeners;
    let mask = port.map_or(listeners.opened, |port| {
        let known = listeners.ports.iter().find(|(known, _)| *known == port);
        known.map_or(listeners.others, |(_, mask)| *mask)
    });
    for candidate in &flat.rows[row as usize] {
        let rule = &flat.rules[usize::from(candidate.rule)];
        if mask >> candidate.rule & 1 == 0 || rule.window.is_some_and(|it| !holds(&it, now)) {
            continue;
        }
        let arm = match rule.experiment {
            None => Some(0),
            Some(experiment) => arm(&flat.experiments[usize::from(experiment)], client),
        };
        if let Some(arm) = arm {
            return &flat.outcomes[usize::from(candidate.outcome) + arm];
        }
    }
    &flat.outcomes[0]
}

fn mapped(client: IpAddr) -> Ipv6Addr {
    match client {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    }
}

fn arm(experiment: &FlatExperiment, client: Ipv6Addr) -> Option<usize> {
    let mut hasher = SipHasher24::new_with_key(&experiment.key);
    hasher.write(&experiment.prefix);
    if let Some(v4) = client.to_ipv4_mapped() {
        hasher.write(b"4");
        hasher.write(&v4.octets()[..3]);
    } else {
        hasher.write(b"6");
        hasher.write(&client.octets()[..6]);
    }
    let slot = slot(hasher.finish());
    experiment.arms.iter().position(|(first, slots)| (*first..first + slots).contains(&slot))
}

fn holds(window: &FlatWindow, now: i64) -> bool {
    if now < window.since || now >= window.until {
        return false;
    }
    let local = now + i64::from(window.ahead);
    let (day, second) = (local.div_euclid(DAY), local.rem_euclid(DAY) as u32);
    let on = |day: i64| window.days >> (day + 3).rem_euclid(7) & 1 == 1;
    if window.from < window.to {
        return (window.from..window.to).contains(&second) && on(day);
    }
    second >= window.from && on(day) || second < window.to && on(day - 1)
}

pub(crate) fn origins() -> Origins {
    let mut origins = Origins::new();
    let databases = [of_asn(0x0a01_0000, 16, 64_500), of_country(0x0a80_0000, 10, "PE")];
    for bytes in databases {
        origins.add(bytes).expect("a database");
    }
    origins
}

/// The rule, the arm and the controller, for comparison.
type Decided = (Option<u16>, Option<String>, Option<String>);

fn policy_decision(decision: &Decision<'_>) -> Decided {
    let rule = match decision.by {
        By::Default => None,
        By::Rule { index, .. } => Some(index as u16),
    };
    let arm = decision.experiment.map(|it| it.arm.to_owned());
    (rule, arm, decision.settings.tcp.as_deref().map(str::to_owned))
}

fn flat_decision(outcome: &Outcome) -> Decided {
    let arm = outcome.arm.as_ref().map(|arm| arm.arm.clone());
    (outcome.rule, arm, outcome.tcp.clone())
}

pub(crate) fn octet(is: bool) -> u8 {
    if is { 128 } else { 1 }
}

/// A network of few addresses, so that networks nest and meet.
fn network() -> impl Strategy<Value = String> {
    let v4 = (any::<[bool; 3]>(), 0_u32..=32).prop_map(|(parts, bits)| {
        let [one, two, three] = parts.map(octet);
        let address = u32::from_be_bytes([10, one, two, three]);
        let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
        format!("{}/{bits}", Ipv4Addr::from_bits(address & mask))
    });
    let v6 = (any::<[bool; 2]>(), 0_u32..=64).prop_map(|(parts, bits)| {
        let [one, two] = parts.map(|part| u16::from(octet(part)));
        let address = Ipv6Addr::new(0x2001, 0xdb8, one, two, 0, 0, 0, 0).to_bits();
        let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
        format!("{}/{bits}", Ipv6Addr::from_bits(address & mask))
    });
    prop_oneof![v4, v6]
}

fn time() -> impl Strategy<Value = Option<String>> {
    prop::option::of((0_i64..24, 1_i64..25, 1_u8..127)).prop_map(|drawn| {
        let (from, to, days) = drawn.filter(|(from, to, _)| from != to)?;
        let names = DAYS.iter().enumerate();
        let days: Vec<_> =
            names.filter(|(day, _)| days >> day & 1 == 1).map(|(_, name)| *name).collect();
        let hours = format!("from = \"{from:02}:00\", to = \"{to:02}:00\"");
        Some(format!("time = {{ {hours}, days = {days:?}, utc_offset = \"-05:00\" }}\n"))
    })
}

fn one_of(key: &str, values: &'static [&'static str]) -> impl Strategy<Value = Option<String>> {
    let key = key.to_owned();
    prop::option::weighted(0.3, prop::sample::select(values))
        .prop_map(move |value| value.map(|value| format!("{key} = \"{value}\"\n")))
}

/// A rule; CC stands for its own controller.
pub(crate) fn rule() -> impl Strategy<Value = String> {
    let clients = prop::option::of(prop::collection::vec(network(), 1..4))
        .prop_map(|it| it.map(|it| format!("client = [\"{}\"]\n", it.join("\", \""))));
    let listener = one_of("listener", &["public", "i*", "443", "*"]);
    let (asn, country) = (one_of("asn", &["AS64500"]), one_of("country", &["PE", "CL"]));
    let action = prop::sample::select(vec![
        "use = { tcp = \"CC\" }\n",
        "experiment = \"e\"\n",
        "table = \"some\"\n",
        "table = \"all\"\n",
    ]);
    let parts = (clients, listener, asn, country, time(), action);
    parts.prop_map(|(clients, listener, asn, country, time, action)| {
        let conditions = [clients, listener, asn, country, time];
        let conditions = conditions.into_iter().flatten().collect::<String>();
        // A rule with settings needs a condition.
        let action = if conditions.is_empty() { "experiment = \"e\"\n" } else { action };
        format!("[[rule]]\n{conditions}{action}")
    })
}

pub(crate) fn whole(rules: &[String], share: u8) -> Policy {
    let head = format!(
        "key = \"000102030405060708090a0b0c0d0e0f\"\n[default]\ntcp = \"d\"\n\
         [experiment.e]\nunit = \"prefix\"\nshare = \"{share}%\"\n\
         [experiment.e.arm.a]\ntcp = \"a\"\n[experiment.e.arm.b]\ntcp = \"b\"\n\
         [table]\nfile = \"networks.table\"\n\
         [table.arm.one]\ntcp = \"one\"\n[table.arm.two]\ntcp = \"two\"\n"
    );
    // What is defined must be used.
    let used =
        "[[rule]]\nexperiment = \"e\"\n[[rule]]\ntable = \"some\"\n[[rule]]\ntable = \"all\"\n";
    let rules = rules.iter().enumerate();
    let rules: String =
        rules.map(|(index, rule)| rule.replace("CC", &format!("r{index}"))).collect();
    let mut policy = policy(&format!("{head}{rules}{used}"));
    policy.take_table(finished_table(TABLE).as_bytes()).expect("a table");
    policy
}

proptest! {
    #[test]
    fn every_client_gets_what_the_policy_says(
        rules in prop::collection::vec(rule(), 1..8),
        share in 1_u8..=100,
        asked in prop::collection::vec((any::<[bool; 5]>(), 0_usize..4, 0_i64..14 * DAY), 30),
    ) {
        let policy = whole(&rules, share);
        let (listeners, origins) = ([("public".to_owned(), 80), ("internal".to_owned(), 8080)], origins());
        let flat = policy.flat(&listeners, &origins).expect("all is known on accept");
        for (parts, port, now) in asked {
            let [one, two, three] = [parts[1], parts[2], parts[3]].map(octet);
            let client: IpAddr = if parts[0] {
                // Some in no network of the table but `::/0`, which has no IPv4 address.
                [if parts[4] { 12 } else { 10 }, one, two, three].into()
            } else {
                [0x2001, 0xdb8, one.into(), two.into(), 0, 0, 0, 1_u16].into()
            };
            let (port, name) = [(80, "public"), (8080, "internal"), (443, "443"), (81, "81")][port];
            let facts = Facts::at_accept(name, client, UnixTime(now), origins.of(client));
            let decision = policy.decide(&facts);
            prop_assert!(decision.is_final);
            let found = flat_decision(decide(&flat, client, Some(port), now));
            prop_assert_eq!(found, policy_decision(&decision), "{} {} {}", client, port, now);
            let opened = Facts { listener: Fact::Absent, ..facts };
            let found = flat_decision(decide(&flat, client, None, now));
            prop_assert_eq!(found, policy_decision(&policy.decide(&opened)), "{} opened {}", client, now);
        }
    }
}

#[test]
fn what_is_not_known_on_accept_is_refused_with_its_place() {
    let refused = |rule: &str, head: &str| {
        let text = format!("{head}\n[[rule]]\n{rule}\n");
        policy(&text).flat(&[], &Origins::new()).expect_err("it is not known").to_string()
    };
    for condition in [
        "sni = \"a\"",
        "host = \"a\"",
        "path = \"/a\"",
        "query = { a = \"b\" }",
        "header = { a = \"b\" }",
        "cookie = { a = \"b\" }",
        "size = { min = \"1MB\" }",
    ] {
        let refusal = refused(&format!("{condition}\nuse = {{ tcp = \"bbr\" }}"), "");
        assert!(refusal.contains(&format!(":2: `{}", &condition[..3])), "{refusal}");
        assert_message!(condition, refusal);
    }
    for (case, unit, salt) in
        [("header", "header:x-user", "e"), ("long salt", "prefix", &"s".repeat(101))]
    {
        let experiment = format!(
            "[experiment.e]\nunit = \"{unit}\"\nshare = \"1%\"\nsalt = \"{salt}\"\n[experiment.e.arm.a]\n"
        );
        assert_message!(case, refused("experiment = \"e\"", &experiment));
    }
}

#[test]
fn arm_with_resume_chooses_the_controllers_second_name() {
    let text = "key = \"000102030405060708090a0b0c0d0e0f\"\n[default]\ntcp = \"cubic\"\nresume = true\n\
                [experiment.starts]\nunit = \"prefix\"\nshare = \"100%\"\n\
                [experiment.starts.arm.plain]\ntcp = \"uncork_cubic\"\nresume = false\n\
                [experiment.starts.arm.resume]\ntcp = \"uncork_cubic\"\nresume = true\n\
                [[rule]]\nexperiment = \"starts\"\n";
    let policy = Policy::parse("test", text).expect("a policy");
    let flat = policy.flat(&[], &Origins::new()).expect("a flat one");
    let names: Vec<_> = flat.outcomes.iter().map(Outcome::kernel_name).collect();
    assert_eq!(names, [Some("cubic"), Some("uncork_cubic"), Some("uncork_cubic_r")]);
    let warning = "test: `resume` holds for QUIC only with `tcp = cubic`; write a controller of `uncork kernel load --resume`, such \
                   as uncork_cubic";
    assert_eq!(policy.warnings(None, true), [warning]);
}

#[test]
fn too_many_rules_are_refused() {
    let rules = "[[rule]]\nclient = \"10.0.0.0/24\"\nuse = { tcp = \"bbr\" }\n".repeat(65);
    let error = policy(&rules).flat(&[], &Origins::new()).expect_err("too many");
    assert!(error.to_string().contains("65 rules; a kernel takes 64"), "{error}");
}
