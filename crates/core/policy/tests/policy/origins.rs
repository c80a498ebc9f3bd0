//! Client origins, from databases built by the test.

use proptest::prelude::*;
use uncork_policy::{Fact, Facts, Origin, Origins, UnixTime};

use crate::common::policy;
use crate::mmdb::{database, map, of_asn, of_country, string};

/// 203.0.113.0/24.
const NETWORK: u32 = 0xcb00_7100;

fn asn() -> Vec<u8> {
    of_asn(NETWORK, 24, 64_500)
}

fn country() -> Vec<u8> {
    of_country(NETWORK, 24, "PE")
}

fn origins(databases: impl IntoIterator<Item = Vec<u8>>) -> Origins {
    let mut origins = Origins::new();
    for bytes in databases {
        origins.add(bytes).expect("a database");
    }
    origins
}

fn at(origins: &Origins, address: &str) -> Origin {
    origins.of(address.parse().expect("an address"))
}

#[test]
fn databases_complement_each_other() {
    let origins = origins([asn(), country()]);
    let expected = Origin { asn: Some(64_500), country: "PE".parse().ok() };
    for address in ["203.0.113.0", "203.0.113.255", "::ffff:203.0.113.7"] {
        assert_eq!(at(&origins, address), expected, "{address}");
    }
    for address in ["203.0.112.255", "203.0.114.0", "2001:db8::1"] {
        assert_eq!(at(&origins, address), Origin::default(), "{address}");
    }
}

#[test]
fn a_rule_can_test_the_clients_origin() {
    let policy = policy("[[rule]]\nasn = \"AS64500\"\ncountry = \"PE\"\nuse = { tcp = \"bbr\" }\n");
    let origins = origins([asn(), country()]);
    let decided = |address: &str| {
        let client = address.parse().expect("an address");
        let facts = Facts::at_accept("public", client, UnixTime(0), origins.of(client));
        assert_eq!(facts.listener, Fact::Known("public"));
        let decision = policy.decide(&facts);
        assert!(decision.is_final, "everything required is known");
        decision.settings.tcp.as_deref()
    };
    assert_eq!(decided("203.0.113.9"), Some("bbr"));
    assert_eq!(decided("198.51.100.1"), None);
}

#[test]
fn other_bytes_are_not_a_database() {
    let error = Origins::new().add(b"asn,country\n".to_vec()).expect_err("no database");
    assert!(error.to_string().starts_with("not a database in MaxMind's format: "), "{error}");
    assert!(error.to_string().ends_with("use an .mmdb file"), "{error}");
}

#[test]
fn data_of_another_shape_is_ignored() {
    for data in [
        map(&[("autonomous_system_number", string("AS64500"))]),
        map(&[("country", string("PE"))]),
        map(&[("country", map(&[("iso_code", string("Peru"))]))]),
        string("PE"),
    ] {
        let origins = origins([database(NETWORK, 24, &data)]);
        assert_eq!(at(&origins, "203.0.113.1"), Origin::default());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// A truncated or damaged file is rejected, or lookups return some result.
    #[test]
    fn damaged_files_do_not_panic(
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut: prop::sample::Index,
        whole: bool,
    ) {
        let mut bytes = country();
        for (at, byte) in edits {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if !whole {
            bytes.truncate(cut.index(bytes.len()));
        }
        let mut origins = Origins::new();
        if origins.add(bytes).is_ok() {
            at(&origins, "203.0.113.1");
            at(&origins, "2001:db8::1");
        }
    }
}
