//! Arbitrary replies cause no panic and yield no invented sockets.

mod common;

use common::{SEQUENCE, ipv4, ipv6, read};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use uncork_diag::{Connection, Replies};

/// A truncated datagram yields the same sockets up to the cut.
#[test]
#[cfg(target_endian = "little")]
fn a_truncated_datagram_yields_the_sockets_before_the_cut() {
    for datagram in ipv4().into_iter().chain(ipv6()) {
        let (whole, _) = read(std::slice::from_ref(&datagram));
        for length in 0..datagram.len() {
            let cut = datagram[..length].to_vec();
            let (connections, result) = read(&[cut]);
            assert_eq!(connections, whole[..connections.len()]);
            // Either the cut is between two messages, or it is an error.
            assert!(result == Ok(false) || result.is_err(), "{result:?}");
        }
    }
}

/// The sockets in a datagram up to its end or an error.
fn sockets_in(datagram: &[u8]) -> Vec<Connection> {
    let mut connections = Vec::new();
    // Errors are expected here; panics are not.
    let _result = Replies::to(SEQUENCE).read(datagram, |connection| connections.push(*connection));
    connections
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..600)) {
        sockets_in(&bytes);
    }

    /// Messages and attributes of plausible lengths, so that the inner layers are reached.
    #[test]
    fn any_attributes_are_read_or_skipped(
        family in prop_oneof![Just(2_u8), Just(10)],
        structure in vec(any::<u8>(), 71),
        attributes in vec((0_u16..24, vec(any::<u8>(), 0..320)), 0..8),
    ) {
        let mut body = vec![family];
        body.extend(structure);
        for (kind, value) in attributes {
            body.extend((value.len() as u16 + 4).to_ne_bytes());
            body.extend(kind.to_ne_bytes());
            body.extend(&value);
            body.resize(body.len().next_multiple_of(4), 0);
        }
        let mut message = (body.len() as u32 + 16).to_ne_bytes().to_vec();
        message.extend(20_u16.to_ne_bytes());
        message.extend(2_u16.to_ne_bytes());
        message.extend(SEQUENCE.to_ne_bytes());
        message.extend([0; 4]);
        message.extend(body);
        prop_assert_eq!(sockets_in(&message).len(), 1);
    }

    /// Recorded datagrams with bytes changed, cut off and repeated.
    #[test]
    fn a_damaged_datagram_is_read_or_refused(
        which: Index,
        changes in vec((any::<Index>(), any::<u8>()), 0..6),
        cut: Index,
        again: bool,
    ) {
        let all = [ipv4(), ipv6()].concat();
        let mut datagram = which.get(&all).clone();
        for (at, byte) in changes {
            let at = at.index(datagram.len());
            datagram[at] = byte;
        }
        datagram.truncate(cut.index(datagram.len()) + 1);
        if again {
            datagram.extend_from_within(..);
        }
        sockets_in(&datagram);
    }
}
