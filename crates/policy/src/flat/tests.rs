//! Flat policies decide as the policies that they were made of.

use std::hash::Hasher;
use std::net::{IpAddr, Ipv6Addr};

use proptest::prelude::*;
use siphasher::sip::SipHasher24;

use super::*;
use crate::{By, Decision, Facts, SLOTS, UnixTime};

const NAMES: [&str; 2] = ["public", "internal"];

/// What the kernel does, in Rust: only the tables are used.
fn decide(flat: &Flat, client: IpAddr, port: Option<u16>, now: i64) -> &Outcome {
    let client = mapped(client);
    let matching = flat.networks.iter().filter(|network| {
        let free = u128::MAX.checked_shr(network.bits.into()).unwrap_or(0);
        network.address.to_bits() == client.to_bits() & !free
    });
    let row = matching.max_by_key(|network| network.bits).map_or(0, |network| network.row);
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
    match client.to_ipv4_mapped() {
        Some(v4) => hasher.write(&[&[b'4'], &v4.octets()[..3]].concat()),
        None => hasher.write(&[&[b'6'], &client.octets()[..6]].concat()),
    }
    let slot = ((hasher.finish() >> 32) * u64::from(SLOTS) >> 32) as u16;
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

fn parse(text: &str) -> Policy {
    Policy::parse("p", text).unwrap_or_else(|error| panic!("{}\n{text}", error.render("p", false)))
}

/// The origins of the test database, as in `tests/policy`.
fn origins() -> Origins {
    Origins::new()
}

/// The index of the rule, the arm and the settings, for comparison.
fn told(decision: &Decision<'_>) -> (Option<u16>, Option<String>, Option<String>) {
    let rule = match decision.by {
        By::Default => None,
        By::Rule { index, .. } => Some(index as u16),
    };
    let arm = decision.experiment.map(|it| it.arm.to_owned());
    (rule, arm, decision.settings.tcp.as_deref().map(str::to_owned))
}

fn flat_told(outcome: &Outcome) -> (Option<u16>, Option<String>, Option<String>) {
    let arm = outcome.arm.as_ref().map(|arm| arm.arm.clone());
    (outcome.rule, arm, outcome.tcp.clone())
}

/// Rules of few networks, so that they nest and meet.
fn rule() -> impl Strategy<Value = String> {
    let client = prop_oneof![
        (any::<[bool; 3]>(), 0_u8..=32).prop_map(|(parts, bits)| {
            let address =
                u32::from_be_bytes([10, octet(parts[0]), octet(parts[1]), octet(parts[2])]);
            let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
            format!("{}/{bits}", std::net::Ipv4Addr::from_bits(address & mask))
        }),
        (any::<[bool; 2]>(), 0_u8..=64).prop_map(|(parts, bits)| {
            let address = Ipv6Addr::new(
                0x2001,
                0xdb8,
                u16::from(octet(parts[0])),
                u16::from(octet(parts[1])),
                0,
                0,
                0,
                0,
            );
            let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
            format!("{}/{bits}", Ipv6Addr::from_bits(address.to_bits() & mask))
        }),
    ];
    let clients = prop::option::of(prop::collection::vec(client, 1..4))
        .prop_map(|it| it.map(|it| format!("client = [\"{}\"]\n", it.join("\", \""))));
    let listener = prop::option::of(prop::sample::select(vec!["public", "i*", "443", "*"]))
        .prop_map(|it| it.map(|it| format!("listener = \"{it}\"\n")));
    let time = prop::option::of((0_i64..24, 1_i64..25, 1_u8..127)).prop_map(|it| {
        it.filter(|(from, to, _)| from != to).map(|(from, to, days)| {
            let names = crate::window::WEEKDAYS.iter().enumerate();
            let days: Vec<_> = names.filter(|(day, _)| days >> day & 1 == 1).map(|(_, it)| *it).collect();
            format!("time = {{ from = \"{from:02}:00\", to = \"{to:02}:00\", days = {days:?}, utc_offset = \"-05:00\" }}\n")
        })
    });
    let action = prop_oneof![Just("use = { tcp = \"CC\" }\n"), Just("experiment = \"e\"\n")];
    (clients, listener, time, action).prop_map(|(clients, listener, time, action)| {
        let conditions = [clients, listener, time].into_iter().flatten().collect::<String>();
        // A rule with settings needs a condition.
        let action = if conditions.is_empty() { "experiment = \"e\"\n" } else { action };
        format!("[[rule]]\n{conditions}{action}")
    })
}

fn octet(is: bool) -> u8 {
    if is { 128 } else { 1 }
}

proptest! {
    #[test]
    fn every_client_gets_what_the_policy_says(
        drawn in prop::collection::vec(rule(), 1..8),
        share in 1_u8..=100,
        asked in prop::collection::vec((any::<[bool; 5]>(), 0_usize..4, 0_i64..14 * 86_400), 30),
    ) {
        let head = "key = \"000102030405060708090a0b0c0d0e0f\"\n[default]\ntcp = \"d\"\n";
        let arms = format!("[experiment.e]\nunit = \"prefix\"\nshare = \"{share}%\"\n[experiment.e.arm.a]\ntcp = \"a\"\n[experiment.e.arm.b]\ntcp = \"b\"\n");
        let used = "[[rule]]\nexperiment = \"e\"\n".to_owned();
        let rules = drawn.iter().chain([&used]).enumerate();
        let rules: String = rules.map(|(index, rule)| rule.replace("CC", &format!("r{index}"))).collect();
        let policy = parse(&format!("{head}{arms}{rules}"));
        let listeners = [(NAMES[0].to_owned(), 80), (NAMES[1].to_owned(), 8080)];
        let flat = policy.flat(&listeners, &origins()).expect("all is known on accept");
        for (parts, port, now) in asked {
            let now = now + 20_000 * 86_400;
            let client: IpAddr = if parts[0] {
                [10, octet(parts[1]), octet(parts[2]), octet(parts[3])].into()
            } else {
                [0x2001, 0xdb8, octet(parts[1]).into(), octet(parts[2]).into(), 0, 0, 0, 1_u16].into()
            };
            let (port, name) = [(80, NAMES[0]), (8080, NAMES[1]), (443, "443"), (81, "81")][port];
            let facts = Facts::at_accept(name, client, UnixTime(now), crate::Origin::default());
            let decision = policy.decide(&facts);
            prop_assert!(decision.is_final);
            prop_assert_eq!(flat_told(decide(&flat, client, Some(port), now)), told(&decision), "{} {} {}", client, port, now);
            let opened = Facts { listener: crate::Fact::Absent, ..facts };
            prop_assert_eq!(flat_told(decide(&flat, client, None, now)), told(&policy.decide(&opened)));
        }
    }
}
