//! `conformance/networks.table`, which the Python package writes byte for byte.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;
use std::net::Ipv6Addr;

use super::*;

const TABLE: &str = include_str!("../../../../../conformance/networks.table");

/// The lines of a section in the order of `uncork learn`: the widest first, then networks by family and address.
fn lines(section: &Section, arms: &[Box<str>]) -> String {
    let mut text = format!("section {}\n", section.name);
    let mut add = |of: &dyn fmt::Display, arm: u8| {
        writeln!(text, "{of} {}", arms[usize::from(arm)]).expect("text");
    };
    section.all_clients.iter().for_each(|arm| add(&"*", *arm));
    section.countries.iter().for_each(|(country, arm)| add(country, *arm));
    section.systems.iter().for_each(|(asn, arm)| add(&Of::System(*asn), *arm));
    let mut networks = BTreeMap::new();
    section.each_network(|first, bits, arm| {
        let address = Ipv6Addr::from_bits(first).to_canonical();
        let bits = if address.is_ipv4() { bits - 96 } else { bits };
        networks.insert((address, bits), arm);
    });
    for ((address, bits), arm) in networks {
        add(&Prefix::of(address, bits), arm);
    }
    text
}

#[test]
fn the_shared_table_is_read_as_it_was_written() {
    let table = Table::parse(TABLE.as_bytes()).expect("a table");
    let sections: String = table.sections.iter().map(|one| lines(one, &table.arms)).collect();
    assert_eq!((table.version, Ok(table.expires)), (12, "2026-12-08T00:00:00Z".parse()));
    let (head, _) = TABLE.split_once("section").expect("sections");
    assert_eq!(uncork_testkit::finished_table(&format!("{head}{sections}")), TABLE);
    let kinds = TABLE.lines().filter_map(|line| line.split_once(' ')).map(|(key, _)| match key {
        "*" => "all clients",
        key if key.contains(':') => "IPv6",
        key if key.contains('.') => "IPv4",
        key if key.starts_with("AS") => "AS",
        key if key.parse::<Country>().is_ok() => "country",
        _ => "",
    });
    assert_eq!(kinds.collect::<HashSet<_>>().len(), 6, "all kinds of entries");
}

#[test]
fn table_that_is_written_is_read_as_it_was() {
    let arms = [("203.0.113.0/24", "l4s"), ("2001:db8::/48", "classic")].into();
    let (made, expires) = ("2026-12-01T18:00:00Z", "2026-12-08T18:00:00Z");
    let text = TableText { version: 7, made, expires, section: "ecn", arms }.text();
    let table = Table::parse(text.as_bytes()).expect("a table");
    assert_eq!((table.version, &*table.sections[0].name), (7, "ecn"));
    let arm_of = |address: &str| {
        let client = Fact::Known(address.parse().expect("an address"));
        let facts = Facts { client, ..Facts::default() };
        match table.sections[0].entry(&facts.with_whole_origin()) {
            Fact::Known(entry) => Some(table.arms[usize::from(entry.arm)].to_string()),
            Fact::Absent | Fact::Unknown => None,
        }
    };
    assert_eq!(arm_of("203.0.113.9").as_deref(), Some("l4s"));
    assert_eq!(arm_of("2001:db8::1").as_deref(), Some("classic"));
    assert_eq!(arm_of("192.0.2.1"), None);
}
