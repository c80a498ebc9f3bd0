//! Dumps recorded by `recorded/record.py`.

use uncork_diag::{Connection, DiagError, Replies};

/// A dump's datagrams, in order.
pub(crate) fn datagrams(hex: &str) -> Vec<Vec<u8>> {
    let byte = |pair: &[u8]| {
        let pair = std::str::from_utf8(pair).expect("text");
        u8::from_str_radix(pair, 16).expect("hexadecimal digits")
    };
    hex.lines().map(|line| line.as_bytes().chunks(2).map(byte).collect()).collect()
}

pub(crate) fn ipv4() -> Vec<Vec<u8>> {
    datagrams(include_str!("../recorded/ipv4.hex"))
}

pub(crate) fn ipv6() -> Vec<Vec<u8>> {
    datagrams(include_str!("../recorded/ipv6.hex"))
}

/// The sequence number of the recorded requests.
pub(crate) const SEQUENCE: u32 = 1;

/// The sockets in the datagrams up to the end or an error.
pub(crate) fn read(datagrams: &[Vec<u8>]) -> (Vec<Connection>, Result<bool, DiagError>) {
    let mut replies = Replies::to(SEQUENCE);
    let mut connections = Vec::new();
    let mut result = Ok(false);
    for datagram in datagrams {
        result = replies.read(datagram, |connection| connections.push(*connection));
        if result != Ok(false) {
            break;
        }
    }
    assert_eq!(connections.len() as u64, replies.summary().connections);
    (connections, result)
}
