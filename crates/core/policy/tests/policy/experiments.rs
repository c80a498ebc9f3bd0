//! Assignments of experiments: even, independent of each other, and stable forever.

use std::net::{IpAddr, Ipv4Addr};

use uncork_policy::{Assignment, BUCKETS, By, Fact, Facts, Policy, SLOTS};

use crate::common::{NO_HEADERS, policy, request};

/// A policy with an experiment of two arms.
fn experiment(key: &str, salt: &str, unit: &str, share: &str, weights: [u64; 2]) -> Policy {
    let [one, other] = weights;
    policy(&format!(
        "key = \"{key}\"\n\
         [experiment.e]\nsalt = \"{salt}\"\nunit = \"{unit}\"\nshare = \"{share}\"\n\
         [experiment.e.arm.one]\nweight = {one}\n[experiment.e.arm.other]\nweight = {other}\n\
         [[rule]]\nexperiment = \"e\"\n"
    ))
}

const KEY: &str = "000102030405060708090a0b0c0d0e0f";
const ZEROS: &str = "00000000000000000000000000000000";

fn all(salt: &str) -> Policy {
    experiment(KEY, salt, "prefix", "100%", [1, 1])
}

/// A client in the n-th /24 network.
fn client(n: u32) -> Facts<'static> {
    let client = Fact::Known(IpAddr::V4(Ipv4Addr::from_bits((n << 8) | 7)));
    Facts { client, ..Facts::default() }
}

fn assigned<'p>(policy: &'p Policy, facts: &Facts<'_>) -> Option<Assignment<'p>> {
    policy.decide(facts).experiment
}

fn slot(policy: &Policy, n: u32) -> u16 {
    assigned(policy, &client(n)).expect("all clients take part").slot
}

/// Pearson's χ² statistic of `counts` against equal expectations.
fn chi_squared(counts: &[u32]) -> f64 {
    let expected = f64::from(counts.iter().sum::<u32>()) / counts.len() as f64;
    counts.iter().map(|count| (f64::from(*count) - expected).powi(2) / expected).sum()
}

/// Quantiles of χ² with 99 and 81 degrees of freedom, exceeded once in 10,000 times (Wilson–Hilferty
/// approximation).
const RARE_99: f64 = 160.2;
const RARE_81: f64 = 137.2;

const CLIENTS: u32 = 100_000;

#[test]
fn slots_and_buckets_are_evenly_distributed() {
    for salt in ["a", "b", "bbr-2026"] {
        let policy = all(salt);
        let (mut slots, mut buckets) = ([0_u32; 100], [0_u32; BUCKETS as usize]);
        for n in 0..CLIENTS {
            let it = assigned(&policy, &client(n)).expect("all clients take part");
            slots[usize::from(it.slot / 100)] += 1;
            buckets[usize::from(it.bucket)] += 1;
        }
        assert!(chi_squared(&slots) < RARE_99, "{salt}: {}", chi_squared(&slots));
        assert!(chi_squared(&buckets) < RARE_99, "{salt}: {}", chi_squared(&buckets));
    }
}

/// The χ² statistic of a 10 × 10 table against independence.
fn dependence(pairs: impl Iterator<Item = (u16, u16)>) -> f64 {
    let mut table = [0_u32; 100];
    for (one, other) in pairs {
        table[usize::from(one) * 10 + usize::from(other)] += 1;
    }
    let total = f64::from(table.iter().sum::<u32>());
    let row = |n: usize| f64::from((0..10).map(|at| table[n * 10 + at]).sum::<u32>());
    let column = |n: usize| f64::from((0..10).map(|at| table[at * 10 + n]).sum::<u32>());
    let term = |(at, count): (usize, &u32)| {
        let expected = row(at / 10) * column(at % 10) / total;
        (f64::from(*count) - expected).powi(2) / expected
    };
    table.iter().enumerate().map(term).sum()
}

#[test]
fn experiments_are_independent_of_each_other() {
    let (one, other) = (all("one"), all("other"));
    let tenth = |slot: u16| slot / (SLOTS / 10);
    let pairs = (0..CLIENTS).map(|n| (tenth(slot(&one, n)), tenth(slot(&other, n))));
    let found = dependence(pairs);
    assert!(found < RARE_81, "{found}");
    // The statistic detects dependence.
    let same = (0..CLIENTS).map(|n| (tenth(slot(&one, n)), tenth(slot(&one, n))));
    assert!(dependence(same) > 100_000.0);
}

#[test]
fn buckets_are_independent_of_slots() {
    let policy = all("one");
    let pair = |n| {
        let it = assigned(&policy, &client(n)).expect("all clients take part");
        (it.slot / (SLOTS / 10), u16::from(it.bucket) / 10)
    };
    let found = dependence((0..CLIENTS).map(pair));
    assert!(found < RARE_81, "{found}");
}

#[test]
fn assignments_with_another_key_are_independent() {
    let (one, other) = (all("one"), experiment(ZEROS, "one", "prefix", "100%", [1, 1]));
    let tenth = |slot: u16| slot / (SLOTS / 10);
    let pairs = (0..CLIENTS).map(|n| (tenth(slot(&one, n)), tenth(slot(&other, n))));
    assert!(dependence(pairs) < RARE_81);
}

/// Hashes from a second implementation in Python, written from the paper.
#[test]
fn assignments_never_change() {
    #[rustfmt::skip]
    let golden = [
        (KEY, "prefix", "203.0.113.9", 0x1b3e_2924_4210_417e_u64, 1064, 25),
        (KEY, "prefix", "198.51.100.200", 0xac43_2fcc_a245_5fd4_u64, 6729, 63),
        (KEY, "prefix", "2001:db8:1:2::3", 0x8ad7_909d_9351_c0c2_u64, 5423, 57),
        (ZEROS, "prefix", "203.0.113.9", 0xe75c_b217_9eba_24b5_u64, 9037, 62),
        (ZEROS, "prefix", "198.51.100.200", 0x875c_7fe9_6e3e_984b_u64, 5287, 43),
        (ZEROS, "prefix", "2001:db8:1:2::3", 0x89a1_aa03_5eb0_2525_u64, 5376, 36),
        (KEY, "cookie:uid", "7", 0x7817_d2a7_0aec_a5a2_u64, 4691, 4),
        (KEY, "header:x-user", "7", 0x6d91_9d7b_6294_969c_u64, 4280, 38),
    ];
    for (key, unit, value, hash, slot, bucket) in golden {
        let policy = experiment(key, "bbr-2026", unit, "100%", [1, 1]);
        let headers = [("Cookie", format!("a=1; uid={value}")), ("X-User", value.to_owned())];
        let client = if unit == "prefix" { value } else { "192.0.2.1" };
        let facts = Facts {
            client: Fact::Known(client.parse().expect("an address")),
            headers: Fact::Known(&headers),
            ..Facts::default()
        };
        let it = assigned(&policy, &facts).expect("all clients take part");
        assert_eq!((it.unit, it.slot, it.bucket), (hash, slot, bucket), "{unit} {value}");
        assert_eq!(it.arm, if slot < SLOTS / 2 { "one" } else { "other" });
    }
}

#[test]
fn client_is_identified_by_its_network() {
    let policy = all("one");
    let of = |text: &str| {
        let client = Fact::Known(text.parse().expect("an address"));
        assigned(&policy, &Facts { client, ..Facts::default() }).map(|it| it.unit)
    };
    assert_eq!(of("203.0.113.9"), of("203.0.113.255"));
    assert_eq!(of("203.0.113.9"), of("::ffff:203.0.113.1"));
    assert_ne!(of("203.0.113.9"), of("203.0.112.9"));
    assert_eq!(of("2001:db8:1:2::3"), of("2001:db8:1:ffff::1"));
    assert_ne!(of("2001:db8:1::"), of("2001:db8:2::"));
}

#[test]
fn growing_share_moves_no_unit_and_has_its_size() {
    let shares = ["1%", "10%", "50%", "100%"];
    let policies = shares.map(|share| experiment(KEY, "one", "prefix", share, [9, 1]));
    let mut takes_part = [0_u32; 4];
    for n in 0..20_000 {
        let arms = policies.each_ref().map(|policy| assigned(policy, &client(n)).map(|it| it.arm));
        let first = arms.iter().position(Option::is_some).expect("100% is all clients");
        assert!(arms[first..].iter().all(|arm| *arm == arms[first]), "{n}: {arms:?}");
        for (count, arm) in takes_part.iter_mut().zip(arms) {
            *count += u32::from(arm.is_some());
        }
    }
    // Within five standard deviations of a binomial distribution.
    for (count, share) in takes_part.into_iter().zip([0.01, 0.1, 0.5, 1.0_f64]) {
        let expected = 20_000.0 * share;
        let near = 5.0 * (expected * (1.0 - share)).sqrt();
        assert!((f64::from(count) - expected).abs() <= near, "{share}: {count}");
    }
}

#[test]
fn propensity_is_that_of_the_arm() {
    let policy = experiment(KEY, "one", "prefix", "10%", [9, 1]);
    let mut found: Vec<(&str, String)> = (0..20_000)
        .filter_map(|n| assigned(&policy, &client(n)))
        .map(|it| (it.arm, it.propensity.to_string()))
        .collect();
    found.sort();
    found.dedup();
    assert_eq!(found, [("one", "9%".to_owned()), ("other", "1%".to_owned())]);
}

/// Two experiments on the same clients: the weights of one do not affect the other.
#[test]
fn changed_weights_do_not_affect_other_experiments() {
    let text = |weight: u64| {
        format!(
            "[experiment.a]\nunit = \"prefix\"\nshare = \"30%\"\n\
             [experiment.a.arm.x]\nweight = {weight}\n[experiment.a.arm.y]\n\
             [experiment.b]\nunit = \"prefix\"\nshare = \"100%\"\n[experiment.b.arm.x]\n\
             [experiment.b.arm.y]\n\
             [[rule]]\nlistener = \"a\"\nexperiment = \"a\"\n[[rule]]\nexperiment = \"b\"\n"
        )
    };
    let (before, after) = (policy(&text(1)), policy(&text(7)));
    let mut moved = 0;
    for n in 0..2000 {
        let mut facts = client(n);
        facts.listener = Fact::Known("b");
        assert_eq!(assigned(&before, &facts), assigned(&after, &facts));
        facts.listener = Fact::Known("a");
        moved += u32::from(assigned(&before, &facts) != assigned(&after, &facts));
    }
    assert!(moved > 0, "the weights did change");
}

#[test]
fn absent_unit_does_not_take_part() {
    let policy = experiment(KEY, "one", "cookie:uid", "100%", [1, 1]);
    let decided = |facts: &Facts<'_>| {
        let decision = policy.decide(facts);
        (decision.by == By::Default, decision.is_final)
    };
    assert_eq!(decided(&Facts::default()), (true, false));
    assert_eq!(decided(&request(&NO_HEADERS)), (true, true));
    assert_eq!(decided(&request(&[("cookie", "uid=")])), (true, true));
    assert_eq!(decided(&request(&[("cookie", "uid=1")])), (false, true));
    let empty = experiment(KEY, "one", "prefix", "0%", [1, 1]);
    assert!((0..1000).all(|n| assigned(&empty, &client(n)).is_none()));
}
