//! Longest-prefix match in one or two cache misses, for programs and for the kernel.
//!
//! A trie of six bits per level, with runs of equal slots stored once: Poptrie (Asai and Ohara, SIGCOMM 2015), with
//! the entries of a node behind its bits. So a look-up reads one or two neighbouring cache lines per level, and only
//! the last levels are large. IPv4 networks are mapped (RFC 4291 §2.5.5.2) and have 96 bits more: 16 levels, which a
//! look-up leaves out. A /24 is a whole number of levels, and a /48 is, too.

use std::net::IpAddr;

/// Bits of the address for each level.
const STEP: u32 = 6;
const SLOTS: u32 = 1 << STEP;
/// Marks an entry as a value. Others are the place of a node.
const VALUE: u32 = 1 << 31;
/// 256 MiB of words.
const MOST_WORDS: usize = 1 << 26;
/// Where IPv4 addresses are.
const MAPPED: u128 = 0xffff << 32;

/// Values of networks. An address has the value of the longest network that contains it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrefixMap {
    /// A node is 64 bits, low word first, and its entries. A set bit is a slot at which the next entry begins.
    words: Box<[u32]>,
    v6: u32,
    v4: u32,
}

/// A network: its address, IPv4 mapped; its prefix length; its value, below 2³¹.
pub(crate) type Network = (u128, u8, u32);

/// The networks take more than 256 MiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLarge;

impl PrefixMap {
    /// The map of `networks`, of which no two are equal. Other addresses have the value `outside`.
    pub(crate) fn new(mut networks: Vec<Network>, outside: u32) -> Result<Self, TooLarge> {
        networks.sort_unstable_by_key(|(first, bits, _)| (*first, *bits));
        Self::of_sorted(networks, outside)
    }

    /// As [`Self::new`], with networks sorted by address and length.
    pub(crate) fn of_sorted(
        networks: impl IntoIterator<Item = Network>,
        outside: u32,
    ) -> Result<Self, TooLarge> {
        let mut builder = Builder { words: Vec::new(), segments: Segments::new(networks, outside) };
        let all = 0..builder.segments.starts.len();
        let v6 = builder.entry(all, 0, 0)?;
        let mut map = Self { words: builder.words.into(), v6, v4: v6 };
        let mut key = MAPPED;
        for _ in 0..96 / STEP {
            (map.v4, key) = (map.next(map.v4, key), key << STEP);
        }
        Ok(map)
    }

    /// The value of an address; IPv4-mapped addresses are IPv4.
    pub fn find(&self, address: IpAddr) -> u32 {
        let (mut entry, mut key) = match address.to_canonical() {
            IpAddr::V4(v4) => (self.v4, u128::from(v4.to_bits()) << 96),
            IpAddr::V6(v6) => (self.v6, v6.to_bits()),
        };
        while entry & VALUE == 0 {
            (entry, key) = (self.next(entry, key), key << STEP);
        }
        entry & !VALUE
    }

    /// The entry for the first bits of `key`, one level below `entry`.
    fn next(&self, entry: u32, key: u128) -> u32 {
        if entry & VALUE != 0 {
            return entry;
        }
        let at = entry as usize;
        let slot = (key >> (128 - STEP)) as u32;
        let upto = self.starts(at) << (SLOTS - 1 - slot);
        self.words[at + 1 + upto.count_ones() as usize]
    }

    fn starts(&self, at: usize) -> u64 {
        u64::from(self.words[at]) | u64::from(self.words[at + 1]) << 32
    }

    /// Where values begin and which, in the order of addresses; some repeat.
    pub(crate) fn each(&self, mut visit: impl FnMut(u128, u32)) {
        self.each_below(self.v6, 0, 0, &mut visit);
    }

    fn each_below(&self, entry: u32, first: u128, depth: u32, visit: &mut impl FnMut(u128, u32)) {
        if entry & VALUE != 0 {
            return visit(first, entry & !VALUE);
        }
        let (at, mut starts) = (entry as usize, self.starts(entry as usize));
        let mut next = at + 2;
        while starts != 0 {
            let slot = starts.trailing_zeros();
            self.each_below(self.words[next], first | place(slot, depth), depth + STEP, visit);
            starts &= starts - 1;
            next += 1;
        }
    }

    /// The words of all nodes, for a reader that cannot run this crate.
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// The first entries: of IPv4 addresses, and of the others. A value has its highest bit set; others are the index
    /// of a node's first word.
    pub const fn roots(&self) -> [u32; 2] {
        [self.v4, self.v6]
    }
}

/// A slot's first address within its node. The last level has two bits only.
fn place(slot: u32, depth: u32) -> u128 {
    u128::from(slot) << (128 - STEP) >> depth
}

/// Networks flattened: where each value begins, in ascending order.
struct Segments {
    starts: Vec<u128>,
    values: Vec<u32>,
}

impl Segments {
    fn new(networks: impl IntoIterator<Item = Network>, outside: u32) -> Self {
        let mut flat = Self { starts: Vec::new(), values: Vec::new() };
        flat.begin(0, outside);
        // The networks around the current address, innermost last: last address and value.
        let mut around = vec![(u128::MAX, outside)];
        for (first, bits, value) in networks {
            flat.close(&mut around, Some(first));
            flat.begin(first, value);
            around.push((first | u128::MAX.checked_shr(bits.into()).unwrap_or(0), value));
        }
        flat.close(&mut around, None);
        flat
    }

    /// Closes the networks that end before `next`, or all.
    fn close(&mut self, around: &mut Vec<(u128, u32)>, next: Option<u128>) {
        while let Some((last, _)) = around.pop_if(|(last, _)| next.is_none_or(|it| *last < it)) {
            if let (Some(after), Some((_, value))) = (last.checked_add(1), around.last()) {
                self.begin(after, *value);
            }
        }
    }

    /// Begins a segment. One that begins at the same place had no address.
    fn begin(&mut self, start: u128, value: u32) {
        if self.starts.last() == Some(&start) {
            self.starts.pop();
            self.values.pop();
        }
        if self.values.last() != Some(&value) {
            self.starts.push(start);
            self.values.push(value);
        }
    }
}

struct Builder {
    words: Vec<u32>,
    segments: Segments,
}

/// What begins at a slot of a node: a value, or these segments, of which some begin within the slot.
enum Run {
    Value(u32),
    Node(std::ops::Range<usize>),
}

impl Builder {
    /// The entry for these segments: those with an address among those that share their first `depth` bits with `first`.
    fn entry(
        &mut self,
        segments: std::ops::Range<usize>,
        first: u128,
        depth: u32,
    ) -> Result<u32, TooLarge> {
        if segments.len() == 1 {
            return Ok(VALUE | self.segments.values[segments.start]);
        }
        let runs = self.runs(segments, first, depth);
        let at = self.words.len();
        if at + 2 + runs.len() > MOST_WORDS {
            return Err(TooLarge);
        }
        let starts: u64 = runs.iter().map(|(slot, _)| 1 << slot).sum();
        self.words.extend([starts as u32, (starts >> 32) as u32]);
        // An even place, so that the bits of a node are never in two cache lines.
        let room = runs.len().next_multiple_of(2);
        self.words.resize(at + 2 + room, 0);
        for (index, (slot, run)) in runs.into_iter().enumerate() {
            self.words[at + 2 + index] = match run {
                Run::Value(value) => VALUE | value,
                Run::Node(inside) => {
                    self.entry(inside, first | place(slot, depth), depth + STEP)?
                }
            };
        }
        Ok(at as u32)
    }

    /// What a node's slots have.
    fn runs(
        &self,
        segments: std::ops::Range<usize>,
        first: u128,
        depth: u32,
    ) -> Vec<(u32, Run)> {
        let Segments { starts, values } = &self.segments;
        let (mut runs, mut slot, mut current) = (Vec::new(), 0, segments.start);
        // `current` is the segment at the beginning of `slot`.
        while slot < SLOTS {
            let next = starts[..segments.end].get(current + 1);
            let next_slot = next.map(|next| slot_of(next - first, depth));
            if next_slot != Some(slot) {
                runs.push((slot, Run::Value(values[current])));
                slot = next_slot.unwrap_or(SLOTS);
            } else {
                // It begins within the slot.
                let after = slot + 1;
                let is_inside = |start: &u128| slot_of(start - first, depth) < after;
                let inside = starts[current..segments.end].partition_point(is_inside);
                runs.push((slot, Run::Node(current..current + inside)));
                (slot, current) = (after, current + inside - 1);
            }
            let begins = |next: &u128| slot < SLOTS && next - first == place(slot, depth);
            current += usize::from(starts[..segments.end].get(current + 1).is_some_and(begins));
        }
        runs
    }
}

/// The slot of an address, relative to the first one of its node.
fn slot_of(relative: u128, depth: u32) -> u32 {
    (relative << depth >> (128 - STEP)) as u32
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use proptest::prelude::*;

    use super::*;

    const OUTSIDE: u32 = 99;

    fn network(address: u128, bits: u8, value: u32) -> Network {
        (address & !u128::MAX.checked_shr(bits.into()).unwrap_or(0), bits, value)
    }

    fn map(networks: &[Network]) -> PrefixMap {
        PrefixMap::new(networks.to_vec(), OUTSIDE).expect("it is small")
    }

    /// A search through all networks.
    fn longest(networks: &[Network], address: u128) -> u32 {
        let around = networks.iter().filter(|(first, bits, _)| {
            address & !u128::MAX.checked_shr((*bits).into()).unwrap_or(0) == *first
        });
        around.max_by_key(|(_, bits, _)| *bits).map_or(OUTSIDE, |(.., value)| *value)
    }

    fn address(bits: u128) -> IpAddr {
        Ipv6Addr::from_bits(bits).into()
    }

    /// Few different addresses, so that networks nest and touch; near the ends of the address space and of IPv4's.
    fn networks() -> impl Strategy<Value = Vec<Network>> {
        let spread = |drawn: u128| drawn.wrapping_mul(0x0410_4104_1041_0410_4104_1041_0410_4105);
        let base = prop_oneof![
            (0_u128..64).prop_map(spread),
            (0_u128..16).prop_map(move |drawn| MAPPED | spread(drawn) & 0xffff_ffff),
            (0_u128..8).prop_map(|drawn| MAPPED - 4 + drawn),
            (0_u128..4),
            (0_u128..4).prop_map(|drawn| u128::MAX - drawn),
        ];
        let one = (base, 0_u8..=128, 0_u32..8);
        prop::collection::vec(one, 0..200).prop_map(|drawn| {
            let networks = drawn.into_iter().map(|(at, bits, value)| network(at, bits, value));
            let mut networks: Vec<_> = networks.collect();
            networks.sort_unstable();
            networks.dedup_by_key(|(first, bits, _)| (*first, *bits));
            networks
        })
    }

    proptest! {
        #[test]
        fn the_longest_network_is_found(
            networks in networks(),
            asked in prop::collection::vec(any::<u128>(), 20),
        ) {
            let map = map(&networks);
            let edges = networks.iter().flat_map(|(first, bits, _)| {
                let last = first | u128::MAX.checked_shr((*bits).into()).unwrap_or(0);
                [first.wrapping_sub(1), *first, last, last.wrapping_add(1)]
            });
            for asked in asked.into_iter().chain(edges) {
                let expected = longest(&networks, asked);
                prop_assert_eq!(map.find(address(asked)), expected, "{}", address(asked));
                if let Some(v4) = Ipv6Addr::from_bits(asked).to_ipv4_mapped() {
                    prop_assert_eq!(map.find(v4.into()), expected, "{}", v4);
                }
            }
        }

        #[test]
        fn each_address_that_begins_a_value_is_visited_in_order(networks in networks()) {
            let map = map(&networks);
            let mut seen = Vec::new();
            map.each(|first, value| seen.push((first, value)));
            prop_assert_eq!(seen[0].0, 0);
            prop_assert!(seen.is_sorted_by(|one, next| one.0 < next.0));
            for (first, value) in &seen {
                prop_assert_eq!(*value, longest(&networks, *first));
            }
            let begins = |at: u128| seen.iter().any(|(first, _)| *first == at);
            for (first, ..) in &networks {
                let before = first.checked_sub(1).map(|before| longest(&networks, before));
                let begun = before == Some(longest(&networks, *first)) || begins(*first);
                prop_assert!(begun, "{}", address(*first));
            }
        }
    }

    #[test]
    fn no_networks_take_no_words() {
        let map = map(&[]);
        assert_eq!((map.words(), map.roots()), (&[][..], [VALUE | OUTSIDE; 2]));
        assert_eq!(map.find(Ipv4Addr::LOCALHOST.into()), OUTSIDE);
    }

    #[test]
    fn one_network_for_all_takes_no_words() {
        let map = map(&[(0, 0, 1)]);
        assert_eq!((map.words(), map.roots()), (&[][..], [VALUE | 1; 2]));
    }

    #[test]
    fn every_length_has_its_first_and_last_address() {
        let at = 0x2001_0db8_5555_aaaa_5555_aaaa_5555_aaaa_u128;
        let networks: Vec<_> =
            (1_u8..=128).map(|bits| network(at, bits, u32::from(bits))).collect();
        let map = map(&networks);
        for (first, bits, _) in &networks {
            let last = first | u128::MAX.checked_shr((*bits).into()).unwrap_or(0);
            for asked in [first.wrapping_sub(1), *first, last, last.wrapping_add(1)] {
                assert_eq!(map.find(address(asked)), longest(&networks, asked), "/{bits}");
            }
        }
    }

    /// A /24 among random ones takes fewer than 48 bytes.
    #[test]
    fn memory_is_bounded() {
        let spread = |n: u32| u128::from(n.wrapping_mul(0x9e37_79b1) >> 8 << 8);
        let networks = (0..200_000).map(|n| (MAPPED | spread(n), 120, n % 2)).collect();
        let map = PrefixMap::new(networks, OUTSIDE).expect("it is small");
        assert!(map.words().len() * 4 < 48 * 200_000, "{}", map.words().len());
        let hosts = |n: u64| (u128::from(n.wrapping_mul(0x9e37_79b9_7f4a_7c15)) << 64 | 1, 128, 1);
        let many = (0..700_000).map(hosts).collect();
        assert_eq!(PrefixMap::new(many, OUTSIDE), Err(TooLarge));
    }
}
