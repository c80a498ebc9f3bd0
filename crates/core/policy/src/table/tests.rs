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
    section.everybody.iter().for_each(|arm| add(&"*", *arm));
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
        "*" => "everybody",
        key if key.contains(':') => "IPv6",
        key if key.contains('.') => "IPv4",
        key if key.starts_with("AS") => "AS",
        key if key.parse::<Country>().is_ok() => "country",
        _ => "",
    });
    assert_eq!(kinds.collect::<HashSet<_>>().len(), 6, "all kinds of entries");
}
