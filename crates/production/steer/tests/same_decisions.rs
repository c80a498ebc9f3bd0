//! The program decides as the policy does: the same rule, arm, hash, slot and bucket for each of a million clients.
#![cfg(target_os = "linux")]

#[path = "../../../core/policy/tests/policy/mmdb.rs"]
mod mmdb;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use uncork_policy::{By, Decision, Fact, Facts, Origins, Policy, UnixTime, bucket, slot};
use uncork_steer::{Error, Loaded, Question};
use uncork_testkit::{Capability, finished_table, not_run};
use uncork_units::Rng;

const CLIENTS: u64 = 1_000_000;

/// All kinds of conditions that a kernel knows, nested networks, a table, and experiments with salts of many lengths.
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

[table]
file = "networks.table"
[table.arm.one]
tcp = "one"
[table.arm.two]
tcp = "two"
pacing_cap = "40mbit"

[[rule]]
name = "inside"
client = ["10.0.0.0/8", "fd00::/8", "64.0.0.0/3"]
listener = "internal"
use = { tcp = "inside" }

[[rule]]
asn = ["AS64500", "AS64503"]
country = "PE"
use = { tcp = "origin" }

[[rule]]
country = ["PE", "CL"]
time = { since = 2026-12-01T00:00:00Z, until = 2027-06-01T00:00:00Z }
use = { tcp = "country" }

[[rule]]
asn = ["AS64501", "AS64502"]
experiment = "second"

[[rule]]
listener = "public"
table = "some"

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

[[rule]]
listener = "*"
table = "all"
"#;

/// Entries of all kinds. It expires in the middle of the year that is asked about.
const TABLE: &str = "\
uncork-table 1
version 1
made 2026-09-01T00:00:00Z
expires 2027-03-22T00:00:00Z
section some
AS64500 one
CL two
10.0.0.0/7 two
98.64.0.0/10 one
98.64.0.0/24 two
98.64.0.128/25 one
103.255.255.255/32 one
203.0.113.7/32 two
::/0 one
2001:db8::/32 two
2001:db8:80::/48 one
2001:db8:80::1/128 two
section all
* two
PE one
AS64504 one
16.0.0.0/5 one
20.0.0.0/8 two
2000::/5 one
2a00:1:8000::/33 two
";
const EXPIRES: i64 = 1_805_673_600;

/// The origin of networks, each in a database of its own: a country, or an AS. The first one counts.
const DATABASES: [(&str, &str); 11] = [
    ("100.0.0.0/6", "64500"),
    ("96.0.0.0/5", "PE"),
    ("96.0.0.0/4", "64501"),
    ("20.0.0.0/6", "64504"),
    ("18.0.0.0/7", "PE"),
    ("200.0.0.0/9", "CL"),
    ("2001:db8::/34", "64503"),
    ("2001:db8::/33", "PE"),
    ("2001:db9:c000::/34", "64502"),
    ("2a00:1:8000::/34", "CL"),
    ("fd00:0:8000::/33", "64504"),
];

/// Local ports, and the names of their listeners; `None` for connections that the service opens.
const PORTS: [Option<(u16, &str)>; 5] =
    [Some((443, "443")), Some((80, "public")), Some((8443, "internal")), Some((81, "81")), None];

fn listeners() -> Vec<(String, u16)> {
    vec![("public".to_owned(), 80), ("internal".to_owned(), 8443)]
}

fn origins() -> Origins {
    let mut origins = Origins::new();
    for (network, known) in DATABASES {
        let (address, bits) = parsed(network).expect("a network");
        let data = known.parse().map_or_else(|_| mmdb::country(known), mmdb::asn);
        let bytes = match address {
            IpAddr::V4(v4) => mmdb::database(v4.to_bits(), bits, &data),
            IpAddr::V6(v6) => mmdb::database_v6(v6.to_bits(), bits, &data),
        };
        origins.add(bytes).expect("a database");
    }
    origins
}

fn parsed(network: &str) -> Option<(IpAddr, u32)> {
    let (address, bits) = network.split_once('/')?;
    Some((address.parse().ok()?, bits.parse().ok()?))
}

fn policy(text: &str, table: &str) -> Policy {
    let mut policy = Policy::parse("policy.toml", text)
        .unwrap_or_else(|error| panic!("{}", error.render("policy.toml", false)));
    policy.take_table(finished_table(table).as_bytes()).expect("a table");
    policy
}

/// The index of the rule.
fn rule(decision: &Decision<'_>) -> Option<u16> {
    match decision.by {
        By::Default => None,
        By::Rule { index, .. } => Some(index as u16),
    }
}

#[test]
fn the_program_decides_as_the_policy_for_a_million_clients() {
    let (policy, origins) = (policy(POLICY, TABLE), origins());
    let Some(loaded) = load(&policy, &origins) else { return };
    let [steer, ask] = loaded.verified_instructions().expect("reported by the kernel");
    println!("verified instructions: {steer} for connections, {ask} for questions");
    assert!(steer.max(ask) < 600_000);
    let flat = policy.flat(&listeners(), &origins).expect("it was loaded");
    let mut random = Rng::new(7, 0);
    let mut decided = vec![0_u32; flat.outcomes.len()];
    let networks = networks();
    for number in 0..CLIENTS {
        let listener = PORTS[random.below(PORTS.len() as u64) as usize];
        let client = client(number, &networks, &mut random);
        let unix_s = time(&mut random);
        let port = listener.map(|(port, _)| port);
        let answer = loaded.ask(&Question { client, port, unix_s }).expect("the program runs");
        let name = listener.map_or(Fact::Absent, |(_, name)| Fact::Known(name));
        let facts = Facts::at_accept("", client, UnixTime(unix_s), origins.of(client));
        let decision = policy.decide(&Facts { listener: name, ..facts });
        let outcome = &flat.outcomes[answer.outcome];
        decided[answer.outcome] += 1;
        let asked = format!("{client} on {port:?} at {unix_s}");
        assert_eq!(outcome.rule, rule(&decision), "{asked}");
        assert_eq!(outcome.tcp.as_deref(), decision.settings.tcp.as_deref(), "{asked}");
        assert_eq!(outcome.pacing_cap, decision.settings.pacing_cap, "{asked}");
        assert_eq!(outcome.initial_window, decision.settings.initial_window, "{asked}");
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
fn load(policy: &Policy, origins: &Origins) -> Option<Loaded> {
    match Loaded::new(policy, &listeners(), origins) {
        Ok(loaded) => Some(loaded),
        Err(Error::Kernel(error)) if error.is_environment() => {
            not_run(Capability::Bpf, &error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Rules of many networks each, of all lengths, that nest and touch, and a table of such networks. The clients are next to their
/// ends.
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
    let rules: String = rules.collect();
    let table = "[[rule]]\ntable = \"many\"\n[table]\nfile = \"networks.table\"\n\
        [table.arm.one]\ntcp = \"one\"\n[table.arm.two]\ntcp = \"two\"\n";
    // Each is there once.
    let entries: BTreeMap<String, &str> = (0..20_000)
        .map(|_| (network(12, &mut random, &mut clients), ["one", "two"][random.below(2) as usize]))
        .collect();
    let entries = entries.iter().map(|(network, arm)| format!("{network} {arm}\n"));
    let head = "uncork-table 1\nversion 1\nmade 2026-09-01T00:00:00Z\nexpires 2027-03-22T00:00:00Z\n\
        section many\nAS64500 one\nPE two\n";
    let policy =
        policy(&format!("{rules}{table}"), &format!("{head}{}", entries.collect::<String>()));
    let mut origins = Origins::new();
    origins.add(mmdb::of_asn(10 << 24, 10, 64_500)).expect("a database");
    origins.add(mmdb::of_country(10 << 24, 9, "PE")).expect("a database");
    let Some(loaded) = load(&policy, &origins) else { return };
    let flat = policy.flat(&listeners(), &origins).expect("it was loaded");
    let mut decided = vec![0_u32; flat.outcomes.len()];
    for client in clients {
        let answer = loaded.ask(&Question { client, port: Some(443), unix_s: 1_790_000_000 });
        let answer = answer.expect("the program runs");
        let outcome = &flat.outcomes[answer.outcome];
        let origin = origins.of(client);
        let facts = Facts::at_accept("443", client, UnixTime(1_790_000_000), origin);
        let decision = policy.decide(&facts);
        let expected = (rule(&decision), decision.settings.tcp.as_deref());
        assert_eq!((outcome.rule, outcome.tcp.as_deref()), expected, "{client}");
        decided[answer.outcome] += 1;
    }
    println!("clients by what was decided: {decided:?}");
    assert!(decided.iter().all(|count| *count > 100), "each is decided often: {decided:?}");
}

/// A network in few places; and the addresses at its ends and just outside. Networks of later rules are shorter, too.
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

/// All networks that policy, table and databases name: the first and the last address, IPv4 mapped.
fn networks() -> Vec<(u128, u128)> {
    let named = POLICY.split('"').chain(TABLE.split([' ', '\n']));
    let named = named.chain(DATABASES.map(|(network, _)| network)).filter_map(parsed);
    let networks = named.map(|(address, bits)| {
        let (first, bits) = match address {
            IpAddr::V4(v4) => (v4.to_ipv6_mapped(), bits + 96),
            IpAddr::V6(v6) => (v6, bits),
        };
        (first.to_bits(), first.to_bits() | u128::MAX.checked_shr(bits).unwrap_or(0))
    });
    networks.collect()
}

/// A year of seconds, so that all days and hours occur; some when the table expires.
fn time(random: &mut Rng) -> i64 {
    match random.below(16) {
        0 => EXPIRES - 1,
        1 => EXPIRES,
        _ => 1_790_000_000 + random.below(31_536_000) as i64,
    }
}

/// A quarter in the networks, at their ends and just outside. The others: IPv4 everywhere; IPv6 in few networks, so that rules
/// meet.
fn client(number: u64, networks: &[(u128, u128)], random: &mut Rng) -> IpAddr {
    let low = u128::from(random.below(1 << 32)) << 64 | u128::from(random.below(1 << 32));
    if number.is_multiple_of(4) {
        let (first, last) = networks[random.below(networks.len() as u64) as usize];
        let inside = first | (low | low << 32) & (last - first);
        let places = [first.wrapping_sub(1), first, inside, last, last.wrapping_add(1)];
        let client = Ipv6Addr::from_bits(places[random.below(5) as usize]);
        // Sockets of IPv6 have IPv4 clients mapped.
        return if random.below(2) == 0 { client.into() } else { client.to_canonical() };
    }
    if number % 4 == 2 {
        return Ipv4Addr::from_bits(random.below(1 << 32) as u32).into();
    }
    let high = [0x2001_0db8_u128, 0x2001_0db9, 0x2a00_0001, 0xfd00_0000][random.below(4) as usize];
    Ipv6Addr::from_bits(high << 96 | low).into()
}
