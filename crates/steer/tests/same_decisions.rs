//! The program decides as the policy does: the same rule, arm, hash, slot and bucket for each of a million clients.
#![cfg(target_os = "linux")]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use uncork_policy::{By, Facts, Origin, Origins, Policy, UnixTime, bucket, slot};
use uncork_steer::{Error, Loaded, Question};
use uncork_testkit::{Capability, not_run};
use uncork_units::Rng;

const CLIENTS: u64 = 1_000_000;

/// All kinds of conditions that a kernel knows, nested networks, and experiments with salts of many lengths.
const POLICY: &str = r#"
key = "9f0f1a2b3c4d5e6f708192a3b4c5d6e7"

[default]
tcp = "default"

[experiment.first]
unit = "prefix"
share = "60%"
[experiment.first.arm.control]
tcp = "a"
[experiment.first.arm.bbr]
tcp = "b"
pacing_cap = "20mbit"

[experiment.second]
unit = "prefix"
share = "33.33%"
salt = "a salt of more than one word"
[experiment.second.arm.one]
weight = 3
[experiment.second.arm.two]
[experiment.second.arm.three]

[experiment.third]
unit = "prefix"
share = "100%"
salt = "1234567"
[experiment.third.arm.only]

[[rule]]
name = "inside"
client = ["10.0.0.0/8", "fd00::/8", "64.0.0.0/3"]
listener = "internal"
use = { tcp = "inside" }

[[rule]]
client = ["10.128.0.0/9", "2001:db8::/33", "128.0.0.0/2"]
time = { from = "18:00", to = "01:30", days = ["fri", "sat"], utc_offset = "-05:00" }
use = { tcp = "evening" }

[[rule]]
client = ["0.0.0.0/1", "2000::/4"]
experiment = "first"

[[rule]]
listener = "44*"
experiment = "second"

[[rule]]
client = ["128.0.0.0/1", "2001:db8:8000::/33"]
experiment = "third"
"#;

const PORTS: [(u16, &str); 4] = [(443, "443"), (80, "public"), (8443, "internal"), (81, "81")];

fn listeners() -> Vec<(String, u16)> {
    vec![("public".to_owned(), 80), ("internal".to_owned(), 8443)]
}

#[test]
fn the_program_decides_as_the_policy_for_a_million_clients() {
    let policy = Policy::parse("policy.toml", POLICY)
        .unwrap_or_else(|error| panic!("{}", error.render("policy.toml", false)));
    let Some(loaded) = load(&policy) else { return };
    let [steer, ask] = loaded.verified_instructions().expect("the kernel tells");
    println!("verified instructions: {steer} for connections, {ask} for questions");
    assert!(steer.max(ask) < 600_000);
    let flat = policy.flat(&listeners(), &Origins::new()).expect("it was loaded");
    let mut random = Rng::new(7, 0);
    let mut decided = vec![0_u32; flat.outcomes.len()];
    for number in 0..CLIENTS {
        let (port, name) = PORTS[random.below(PORTS.len() as u64) as usize];
        let client = client(number, &mut random);
        // A year of seconds, so that all days and hours occur.
        let unix_s = 1_790_000_000 + random.below(31_536_000) as i64;
        let answer =
            loaded.ask(&Question { client, port: Some(port), unix_s }).expect("the program runs");
        let facts = Facts::at_accept(name, client, UnixTime(unix_s), Origin::default());
        let decision = policy.decide(&facts);
        let outcome = &flat.outcomes[answer.outcome];
        decided[answer.outcome] += 1;
        let rule = match decision.by {
            By::Default => None,
            By::Rule { index, .. } => Some(index as u16),
        };
        let asked = format!("{client} on {port} at {unix_s}");
        assert_eq!(outcome.rule, rule, "{asked}");
        assert_eq!(outcome.tcp.as_deref(), decision.settings.tcp.as_deref(), "{asked}");
        assert_eq!(outcome.pacing_cap, decision.settings.pacing_cap, "{asked}");
        assert_eq!(answer.policy, policy.fingerprint());
        let Some(assignment) = decision.experiment else {
            assert_eq!((answer.unit, &outcome.arm), (0, &None), "{asked}");
            continue;
        };
        let arm = outcome.arm.as_ref().expect("an arm");
        assert_eq!(
            (&*arm.experiment, &*arm.arm),
            (assignment.experiment, assignment.arm),
            "{asked}"
        );
        assert_eq!(answer.unit, assignment.unit, "{asked}");
        assert_eq!((slot(answer.unit), bucket(answer.unit)), (assignment.slot, assignment.bucket));
        assert_eq!(arm.propensity, assignment.propensity);
    }
    println!("clients by what was decided: {decided:?}");
    assert!(decided.iter().all(|count| *count > 1000), "each is decided often: {decided:?}");
}

/// `None`, with a message, if this machine cannot.
fn load(policy: &Policy) -> Option<Loaded> {
    match Loaded::new(policy, &listeners(), &Origins::new()) {
        Ok(loaded) => Some(loaded),
        Err(Error::Kernel(error)) if error.is_environment() => {
            not_run(Capability::Bpf, &error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Rules of many networks each, of all lengths, that nest and touch. The clients are beside their ends.
#[test]
fn the_program_finds_the_longest_of_many_networks() {
    let mut random = Rng::new(8, 0);
    let mut clients = Vec::new();
    let rules = (0..12).map(|rule| {
        let networks: Vec<String> =
            (0..3_000).map(|_| network(rule, &mut random, &mut clients)).collect();
        let networks = networks.join("\", \"");
        format!("[[rule]]\nclient = [\"{networks}\"]\nuse = {{ tcp = \"r{rule}\" }}\n")
    });
    let policy = Policy::parse("policy.toml", &rules.collect::<String>())
        .unwrap_or_else(|error| panic!("{}", error.render("policy.toml", false)));
    let Some(loaded) = load(&policy) else { return };
    let mut by_rule = [0_u32; 13];
    for client in clients {
        let answer = loaded.ask(&Question { client, port: Some(443), unix_s: 1_790_000_000 });
        let outcome = answer.expect("the program runs").outcome;
        let facts = Facts::at_accept("443", client, UnixTime(1_790_000_000), Origin::default());
        let expected = match policy.decide(&facts).by {
            By::Default => 0,
            By::Rule { index, .. } => index + 1,
        };
        assert_eq!(outcome, expected, "{client}");
        by_rule[outcome] += 1;
    }
    println!("clients by rule: {by_rule:?}");
    assert!(by_rule.iter().all(|count| *count > 100), "each rule decides often: {by_rule:?}");
}

/// A network in few places; and the addresses at its ends and beside them. Those of later rules are shorter, too.
fn network(rule: u64, random: &mut Rng, clients: &mut Vec<IpAddr>) -> String {
    let is_v4 = random.below(2) == 0;
    let (wide, least) = if is_v4 { (32, 24 - rule) } else { (128, 64 - 2 * rule) };
    let bits = (wide - random.below(wide - least)) as u32;
    let free = u128::MAX.checked_shr(128 - (wide as u32 - bits)).unwrap_or(0);
    let spread = u128::from(random.below(1 << 32)) << 32 | u128::from(random.below(1 << 32));
    let address = if is_v4 {
        10 << 24 | spread & 0x00ff_ffff
    } else {
        0x2001_0db8 << 96 | (spread & 0x00ff_ffff) << 72 | spread & 0x00ff_00ff_00ff_00ff
    };
    let first = address & !free;
    let of = |number: u128| -> IpAddr {
        if is_v4 {
            Ipv4Addr::from_bits(number as u32).into()
        } else {
            Ipv6Addr::from_bits(number).into()
        }
    };
    clients.extend([first - 1, first, first | free, (first | free) + 1].map(of));
    format!("{}/{bits}", of(first))
}

/// IPv4 everywhere; IPv6 in few networks, so that rules meet.
fn client(number: u64, random: &mut Rng) -> IpAddr {
    if number.is_multiple_of(2) {
        return Ipv4Addr::from_bits(random.below(1 << 32) as u32).into();
    }
    let low = u128::from(random.below(1 << 32)) << 64 | u128::from(random.below(1 << 32));
    let high = [0x2001_0db8_u128, 0x2001_0db9, 0x2a00_0001, 0xfd00_0000][random.below(4) as usize];
    Ipv6Addr::from_bits(high << 96 | low).into()
}
