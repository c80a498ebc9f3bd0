//! Builds databases in MaxMind's format
//! (`github.com/maxmind/MaxMind-DB/blob/main/MaxMind-DB-spec.md`).
#![allow(dead_code, unreachable_pub, reason = "each test binary uses its own part")]

/// A string field of the data section: type and length, then the text.
pub fn string(text: &str) -> Vec<u8> {
    let mut bytes = vec![2 << 5 | text.len() as u8];
    bytes.extend(text.as_bytes());
    assert!(text.len() < 29, "longer ones have their length elsewhere");
    bytes
}

pub fn map(entries: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = vec![7 << 5 | entries.len() as u8];
    for (key, value) in entries {
        bytes.extend(string(key));
        bytes.extend(value);
    }
    bytes
}

fn uint32(number: u32) -> Vec<u8> {
    [&[6 << 5 | 4][..], &number.to_be_bytes()].concat()
}

fn uint16(number: u16) -> Vec<u8> {
    [&[5 << 5 | 2][..], &number.to_be_bytes()].concat()
}

/// A field of a type above 7: the first byte has only the length, the second the type.
fn extended(kind: u8, payload: &[u8]) -> Vec<u8> {
    [&[payload.len() as u8, kind - 7][..], payload].concat()
}

/// An IPv4 database with `data` for one network of at most 31 bits: one node per bit.
pub fn database(network: u32, bits: u32, data: &[u8]) -> Vec<u8> {
    with_one_network(4, u128::from(network) << 96, bits, data)
}

/// Likewise of IPv6, with at most 127 bits.
pub fn database_v6(network: u128, bits: u32, data: &[u8]) -> Vec<u8> {
    with_one_network(6, network, bits, data)
}

/// The network's first bit is the highest.
fn with_one_network(version: u16, network: u128, bits: u32, data: &[u8]) -> Vec<u8> {
    let mut tree = Vec::new();
    for bit in 0..bits {
        let next = if bit + 1 == bits { bits + 16 } else { bit + 1 };
        let records = if network >> (127 - bit) & 1 == 1 { [bits, next] } else { [next, bits] };
        for record in records {
            tree.extend(&record.to_be_bytes()[1..]);
        }
    }
    let metadata = map(&[
        ("binary_format_major_version", uint16(2)),
        ("binary_format_minor_version", uint16(0)),
        ("build_epoch", extended(9, &[0, 0, 0, 1])),
        ("database_type", string("Test")),
        ("description", map(&[])),
        ("ip_version", uint16(version)),
        ("languages", extended(11, &[])),
        ("node_count", uint32(bits)),
        ("record_size", uint16(24)),
    ]);
    [&tree[..], &[0; 16], data, b"\xab\xcd\xefMaxMind.com", &metadata].concat()
}

/// What a database says of an autonomous system.
pub fn asn(asn: u32) -> Vec<u8> {
    map(&[("autonomous_system_number", uint32(asn))])
}

/// What a database says of a country.
pub fn country(code: &str) -> Vec<u8> {
    map(&[("country", map(&[("iso_code", string(code))]))])
}

/// A database that maps a network to an autonomous system.
pub fn of_asn(network: u32, bits: u32, number: u32) -> Vec<u8> {
    database(network, bits, &asn(number))
}

/// A database that maps a network to a country.
pub fn of_country(network: u32, bits: u32, code: &str) -> Vec<u8> {
    database(network, bits, &country(code))
}
