//! The networks of a section, each with its arm.

use std::net::IpAddr;

use crate::prefix_map::{PrefixMap, PrefixNetwork, TooLarge};

/// The longest network with an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// Its prefix length.
    pub(super) bits: u8,
    /// The index of its arm.
    pub(super) arm: u8,
}

/// Networks and their arms. No IPv4 address is in a network of IPv6.
#[derive(Clone, Debug)]
pub(super) struct Networks(PrefixMap);

const NONE: u16 = u16::MAX;
const MAPPED: PrefixNetwork = (0xffff << 32, 96, NONE);

impl Networks {
    /// Networks, IPv4 mapped with 96 bits more, and their arms; no two are equal.
    pub(super) fn new(
        networks: impl IntoIterator<Item = (u128, u8, u8)>,
    ) -> Result<Self, TooLarge> {
        let value = |bits: u8, arm: u8| u16::from_be_bytes([bits, arm]);
        let networks = networks.into_iter();
        let mut all: Vec<PrefixNetwork> =
            networks.map(|(first, bits, arm)| (first, bits, value(bits, arm))).collect();
        if !all.iter().any(|(first, bits, _)| (*first, *bits) == (MAPPED.0, MAPPED.1)) {
            all.push(MAPPED);
        }
        PrefixMap::new(&all, NONE).map(Self)
    }

    pub(super) fn find(&self, client: IpAddr) -> Option<Found> {
        let [bits, arm] = Some(self.0.find(client)).filter(|it| *it != NONE)?.to_be_bytes();
        let bits = if client.to_canonical().is_ipv4() { bits - 96 } else { bits };
        Some(Found { bits, arm })
    }

    /// Networks and their arms; some come twice.
    pub(super) fn each(&self, mut visit: impl FnMut(u128, u8, u8)) {
        self.0.each(|first, last, value| {
            let [bits, arm] = value.to_be_bytes();
            let size = u128::MAX.checked_shr(bits.into()).unwrap_or(0);
            let mut next = (value != NONE).then_some(first & !size);
            while let Some(network) = next.filter(|network| *network <= last) {
                visit(network, bits, arm);
                next = (network | size).checked_add(1);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Except covered networks: all networks of one length cover a shorter one, or IPv4's space one of IPv6.
        #[test]
        fn all_networks_come_again(
            drawn in prop::collection::btree_map((0_u128..64, 96_u8..=128), 0_u8..2, 0..60),
        ) {
            let spread = |at: u128| 0xffff << 32 | at.wrapping_mul(0x0410_4104) & 0xffff_ffff;
            let networks: BTreeMap<(u128, u8), u8> = drawn
                .into_iter()
                .map(|((at, bits), arm)| {
                    let free = u128::MAX.checked_shr(bits.into()).unwrap_or(0);
                    ((spread(at) & !free, bits), arm)
                })
                .collect();
            let all = networks.iter().map(|((first, bits), arm)| (*first, *bits, *arm));
            let map = Networks::new(all).expect("it is small");
            let mut seen = BTreeMap::new();
            map.each(|first, bits, arm| _ = seen.insert((first, bits), arm));
            for (network, arm) in &seen {
                prop_assert_eq!(networks.get(network), Some(arm));
            }
            for (first, bits) in networks.keys() {
                let inside = |(at, longer): &(u128, u8)| {
                    longer > bits && at & !u128::MAX.checked_shr((*bits).into()).unwrap_or(0) == *first
                };
                let covers = networks.keys().any(inside);
                prop_assert!(covers || seen.contains_key(&(*first, *bits)));
            }
        }
    }
}
