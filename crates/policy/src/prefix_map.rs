//! Longest-prefix match in about two cache misses, for programs and for the kernel.
//!
//! A trie compressed in levels and in paths (Nilsson and Karlsson, "IP-Address Lookup Using LC-Tries", 1999), with
//! networks pushed down to disjoint leaves. A node tells apart as many bits as its addresses fill; bits that all of them
//! share are compared at once. So the table of a million networks has three or four levels, of which the last two are
//! not in the caches. IPv4 and IPv6 have a trie each.

use std::net::IpAddr;
use std::ops::Range;

/// Marks an entry as a value. Others have a kind, a number of bits, less one, and a place, in units of [`UNIT`] words.
const VALUE: u32 = 1 << 31;
/// Bits that must be as expected: three words, expected bits, entry if they are not, entry if they are.
const SHARED: u32 = 1 << 30;
const BITS_AT: u32 = 25;
const UNIT: usize = 4;
/// 256 MiB. A place could be twice as far.
const MOST_WORDS: usize = 1 << 26;
/// So that the first node stays in a cache.
const MOST_BITS: u32 = 20;
/// One of so many entries of a node is filled, at least.
const SPARSE: usize = 4;
/// To compare fewer shared bits costs more than to store them.
const LEAST_SHARED: u32 = 3;
const MOST_SHARED: u32 = 32;
/// Entries that a cache line has.
const LINE: usize = 16;

/// Where IPv4 addresses are (RFC 4291 §2.5.5.2).
const MAPPED: u128 = 0xffff << 32;

/// Values of networks. An address has the value of the longest network that contains it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrefixMap {
    words: Box<[u32]>,
    v4: u32,
    v6: u32,
}

/// A network: its address, IPv4 mapped; its prefix length, 96 more for IPv4; its value, below 2³¹.
pub(crate) type Network = (u128, u8, u32);

/// The networks take more than 256 MiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLarge;

impl Default for PrefixMap {
    /// All addresses have the value 0.
    fn default() -> Self {
        Self { words: Box::default(), v4: VALUE, v6: VALUE }
    }
}

impl PrefixMap {
    /// The map of `networks`, of which no two are equal. Other addresses have the value `outside`.
    pub(crate) fn new(networks: &[Network], outside: u32) -> Result<Self, TooLarge> {
        let mut words = Words::default();
        let is_v4 = |(first, bits, _): &Network| *bits >= 96 && first >> 32 == MAPPED >> 32;
        let around_v4 = networks.iter().filter(|(first, bits, _)| {
            let free = u128::MAX.checked_shr((*bits).into()).unwrap_or(0);
            *bits < 96 && MAPPED & !free == *first
        });
        let v4_outside = around_v4.max_by_key(|(_, bits, _)| *bits).map_or(outside, |it| it.2);
        let v4 = networks.iter().filter(|it| is_v4(it));
        let v4 = v4.map(|(first, bits, value)| (first << 96, bits - 96, *value)).collect();
        let v4 = words.trie(v4, v4_outside)?;
        let v6 = networks.iter().filter(|it| !is_v4(it)).copied().collect();
        let v6 = words.trie(v6, outside)?;
        Ok(Self { words: words.0.into(), v4, v6 })
    }

    /// The value of an address; IPv4-mapped addresses are IPv4.
    pub fn find(&self, address: IpAddr) -> u32 {
        match address.to_canonical() {
            IpAddr::V4(v4) => self.walk(self.v4, u64::from(v4.to_bits()) << 32, 0),
            IpAddr::V6(v6) => {
                let key = v6.to_bits();
                self.walk(self.v6, (key >> 64) as u64, key as u64)
            }
        }
    }

    /// From the entry of a trie with an address, its first bits highest.
    fn walk(&self, mut entry: u32, mut high: u64, mut low: u64) -> u32 {
        while entry & VALUE == 0 {
            let (at, bits) = node(entry);
            let first = (high >> (64 - bits)) as u32;
            if entry & SHARED == 0 {
                entry = self.words[at + first as usize];
            } else if self.words[at] == first {
                entry = self.words[at + 2];
            } else {
                entry = self.words[at + 1];
            }
            high = high << bits | low >> (64 - bits);
            low <<= bits;
        }
        entry & !VALUE
    }

    /// First and last address of blocks with one value, IPv4 mapped: all addresses, in the order of each family.
    pub(crate) fn each(&self, mut visit: impl FnMut(u128, u128, u32)) {
        let mapped = |v4: u128| MAPPED | v4 >> 96;
        let mut visit_v4 = |first, last, value| visit(mapped(first), mapped(last), value);
        self.each_below(self.v4, 0, 0, &mut visit_v4);
        self.each_below(self.v6, 0, 0, &mut visit);
    }

    fn each_below(
        &self,
        entry: u32,
        first: u128,
        depth: u32,
        visit: &mut dyn FnMut(u128, u128, u32),
    ) {
        let last = first | u128::MAX.checked_shr(depth).unwrap_or(0);
        if entry & VALUE != 0 {
            return visit(first, last, entry & !VALUE);
        }
        let (at, bits) = node(entry);
        let inner = depth + bits;
        if entry & SHARED == 0 {
            for slot in 0..1 << bits {
                let begins = first | place(slot, bits, depth);
                self.each_below(self.words[at + slot as usize], begins, inner, visit);
            }
            return;
        }
        let expected = first | place(self.words[at], bits, depth);
        let otherwise = self.words[at + 1] & !VALUE;
        if let Some(before) = expected.checked_sub(1).filter(|before| *before >= first) {
            visit(first, before, otherwise);
        }
        self.each_below(self.words[at + 2], expected, inner, visit);
        let end = expected | u128::MAX.checked_shr(inner).unwrap_or(0);
        if let Some(after) = end.checked_add(1).filter(|after| *after <= last) {
            visit(after, last, otherwise);
        }
    }

    /// The words of all nodes, for a reader that cannot run this crate.
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// The first entries: of IPv4 addresses, and of the others.
    pub const fn roots(&self) -> [u32; 2] {
        [self.v4, self.v6]
    }
}

/// The place of an entry's node, and its bits.
const fn node(entry: u32) -> (usize, u32) {
    ((entry & ((1 << BITS_AT) - 1)) as usize * UNIT, (entry >> BITS_AT & 31) + 1)
}

/// Where a slot of a node of `bits` begins, whose addresses share `depth` bits.
fn place(slot: u32, bits: u32, depth: u32) -> u128 {
    u128::from(slot) << (128 - bits) >> depth
}

/// Networks flattened: where each value begins, in ascending order.
struct Segments {
    starts: Vec<u128>,
    values: Vec<u32>,
}

impl Segments {
    fn new(mut networks: Vec<Network>, outside: u32) -> Self {
        networks.sort_unstable_by_key(|(first, bits, _)| (*first, *bits));
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

    /// Where the segments after the first of these begin.
    fn borders(&self, inside: &Range<usize>) -> &[u128] {
        &self.starts[inside.start + 1..inside.end]
    }

    /// The bits that all addresses with another value than the first and the last segment share, if these two are alike.
    fn shared(&self, inside: &Range<usize>) -> Option<(u128, u32)> {
        let borders = self.borders(inside);
        let (first, after) = (*borders.first()?, *borders.last()?);
        let are_alike = self.values[inside.start] == self.values[inside.end - 1];
        are_alike.then(|| (first, (first ^ (after - 1)).leading_zeros()))
    }

    /// How many bits a node tells apart, after `depth` bits: as many as leave it filled.
    fn bits(&self, inside: &Range<usize>, depth: u32) -> u32 {
        let borders = self.borders(inside);
        // How many borders are in another slot than the one before, by the number of bits that it takes.
        let mut differ = [0_usize; 129];
        for pair in borders.windows(2) {
            differ[(pair[0] ^ pair[1]).leading_zeros() as usize + 1] += 1;
        }
        let least_free = borders.iter().map(|border| border.trailing_zeros()).min().unwrap_or(0);
        let most = MOST_BITS.min(128 - least_free - depth);
        let mut slots = 1;
        let filled = (1..=most).take_while(|bits| {
            slots += differ[(depth + bits) as usize];
            *bits <= 2 || slots * SPARSE >= 1 << bits
        });
        filled.last().unwrap_or(1)
    }

    /// The segments with an address in the block of 2^(128 - depth) addresses from `first`, of these.
    fn within(&self, inside: &Range<usize>, first: u128, depth: u32) -> Range<usize> {
        let last = first | u128::MAX.checked_shr(depth).unwrap_or(0);
        let starts = &self.starts[inside.clone()];
        let from = starts.partition_point(|start| *start <= first) - 1;
        let to = starts.partition_point(|start| *start <= last);
        inside.start + from..inside.start + to
    }
}

#[derive(Default)]
struct Words(Vec<u32>);

impl Words {
    fn trie(&mut self, networks: Vec<Network>, outside: u32) -> Result<u32, TooLarge> {
        let segments = Segments::new(networks, outside);
        self.entry(&segments, 0..segments.starts.len(), 0, 0)
    }

    /// The entry for these segments: those with an address in the block from `first`, whose addresses share `depth` bits.
    fn entry(
        &mut self,
        all: &Segments,
        inside: Range<usize>,
        first: u128,
        depth: u32,
    ) -> Result<u32, TooLarge> {
        let value = VALUE | all.values[inside.start];
        if inside.len() == 1 {
            return Ok(value);
        }
        let shared = all.shared(&inside).filter(|(_, shared)| *shared >= depth + LEAST_SHARED);
        if let Some((address, shared)) = shared {
            let bits = MOST_SHARED.min(shared - depth);
            let expected = (address << depth >> (128 - bits)) as u32;
            let first = first | place(expected, bits, depth);
            let at = self.room(3)?;
            let within = all.within(&inside, first, depth + bits);
            let inner = self.entry(all, within, first, depth + bits)?;
            self.0[at..at + 3].copy_from_slice(&[expected, value, inner]);
            return Ok(SHARED | (bits - 1) << BITS_AT | (at / UNIT) as u32);
        }
        let bits = all.bits(&inside, depth);
        let at = self.room(1 << bits)?;
        self.fill(all, inside, (at, bits), (first, depth))?;
        Ok((bits - 1) << BITS_AT | (at / UNIT) as u32)
    }

    fn fill(
        &mut self,
        all: &Segments,
        inside: Range<usize>,
        (at, bits): (usize, u32),
        (first, depth): (u128, u32),
    ) -> Result<(), TooLarge> {
        // The segment at the beginning of the slot.
        let mut current = inside.start;
        let mut slot = 0;
        while slot < 1 << bits {
            let begins = first | place(slot, bits, depth);
            let borders = &all.starts[..inside.end];
            if borders.get(current + 1) == Some(&begins) {
                current += 1;
            }
            let to = borders
                .get(current + 1)
                .map_or(1 << bits, |next| ((next - first) << depth >> (128 - bits)) as u32);
            if to > slot {
                self.0[at + slot as usize..at + to as usize].fill(VALUE | all.values[current]);
                slot = to;
                continue;
            }
            let within = all.within(&(current..inside.end), begins, depth + bits);
            current = within.end - 1;
            self.0[at + slot as usize] = self.entry(all, within, begins, depth + bits)?;
            slot += 1;
        }
        Ok(())
    }

    /// The place of so many new words. What fits into a cache line is in one.
    fn room(&mut self, words: usize) -> Result<usize, TooLarge> {
        let unit = words.next_power_of_two().clamp(UNIT, LINE);
        let at = self.0.len().next_multiple_of(unit);
        if at + words > MOST_WORDS {
            return Err(TooLarge);
        }
        self.0.resize(at + words, 0);
        Ok(at)
    }
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
        PrefixMap::new(networks, OUTSIDE).expect("it is small")
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
        fn each_address_is_in_one_block_with_its_value(networks in networks()) {
            let mut blocks = Vec::new();
            map(&networks).each(|first, last, value| blocks.push((first, last, value)));
            let v4 = blocks.iter().position(|(first, ..)| *first == 0).expect("IPv6's begin");
            let (v4, v6) = blocks.split_at(v4);
            for (blocks, begin, end) in [(v4, MAPPED, MAPPED | 0xffff_ffff), (v6, 0, u128::MAX)] {
                prop_assert_eq!((blocks[0].0, blocks[blocks.len() - 1].1), (begin, end));
                for pair in blocks.windows(2) {
                    prop_assert_eq!(pair[0].1 + 1, pair[1].0);
                }
            }
            let v6 = v6.iter().filter(|(first, last, _)| first >> 32 != 0xffff && last >> 32 != 0xffff);
            for (first, last, value) in v4.iter().chain(v6) {
                prop_assert_eq!(*value, longest(&networks, *first), "{}", address(*first));
                prop_assert_eq!(*value, longest(&networks, *last), "{}", address(*last));
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
        let networks: Vec<_> = (0..200_000).map(|n| (MAPPED | spread(n), 120, n % 2)).collect();
        let map = PrefixMap::new(&networks, OUTSIDE).expect("it is small");
        assert!(map.words().len() * 4 < 48 * 200_000, "{}", map.words().len());
        let hosts = |n: u64| (u128::from(n.wrapping_mul(0x9e37_79b9_7f4a_7c15)) << 64 | 1, 128, 1);
        let many: Vec<_> = (0..4_000_000).map(hosts).collect();
        assert_eq!(PrefixMap::new(&many, OUTSIDE), Err(TooLarge));
    }
}
