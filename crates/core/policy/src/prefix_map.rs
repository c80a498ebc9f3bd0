//! Longest-prefix match in about one cache miss, for programs and for the kernel.
//!
//! A trie compressed in levels and in paths (Nilsson and Karlsson, "IP-Address Lookup Using LC-Tries", 1999), with
//! networks pushed down to disjoint leaves. A node branches on the number of bits that takes the least memory; bits that all of
//! its addresses share are compared at once; and a cache line lists the last few segments. So the table of a
//! million networks has two or three levels. The last one is not in the caches. IPv4 and IPv6 have a trie each.

use std::net::IpAddr;
use std::ops::Range;

/// Marks an entry as a value. Others have a kind, a number of bits, less one, and a place, in units of [`UNIT`] words.
const VALUE: u32 = 1 << 31;
/// Bits that must be as expected: three words, expected bits, entry if they are not, entry if they are.
const SHARED: u32 = 1 << 30;
/// A cache line of segments, by the next [`LISTED_BITS`] of the address: where each begins, in ascending order, and their
/// values, two in a word. The first begins at 0; the last one fills the places that are left.
const LIST: u32 = 1 << 29;
const BITS_AT: u32 = 24;
const UNIT: usize = 4;
/// 256 MiB, as far as a place can be.
const MAX_WORDS: usize = 1 << 26;
/// So that the first node stays in a cache.
const MAX_BITS: u32 = 20;
/// To compare fewer shared bits costs more than to store them.
const MIN_SHARED: u32 = 3;
const MAX_SHARED: u32 = 32;
/// Entries that a cache line has, and segments of a list.
const LINE: usize = 16;
/// The highest of 16 is for comparing four at once.
const LISTED_BITS: u32 = 15;
/// A number times this is the number in four fields of 16 bits.
const FIELDS: u64 = 0x0001_0001_0001_0001;
/// Up to this number of bits, a node is as small as a list, and quicker.
const FEW_BITS: u32 = 4;

/// Where IPv4 addresses are (RFC 4291 §2.5.5.2).
const MAPPED: u128 = 0xffff << 32;

/// Values of networks. An address has the value of the longest network that contains it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrefixMap {
    words: Box<[u32]>,
    v4: u32,
    v6: u32,
}

/// A network: its address, IPv4 mapped; its prefix length, 96 more for IPv4; its value.
pub(crate) type PrefixNetwork = (u128, u8, u16);

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
    /// The map of `networks`, which must be distinct. Other addresses have the value `outside`.
    pub(crate) fn new(networks: &[PrefixNetwork], outside: u16) -> Result<Self, TooLarge> {
        let mut words = Words::default();
        let is_v4 = |(first, bits, _): &PrefixNetwork| *bits >= 96 && first >> 32 == MAPPED >> 32;
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
    pub fn find(&self, address: IpAddr) -> u16 {
        match address.to_canonical() {
            IpAddr::V4(v4) => self.walk(self.v4, u64::from(v4.to_bits()) << 32, 0),
            IpAddr::V6(v6) => {
                let key = v6.to_bits();
                self.walk(self.v6, (key >> 64) as u64, key as u64)
            }
        }
    }

    /// From the entry of a trie with an address, its first bits highest.
    fn walk(&self, mut entry: u32, mut high: u64, mut low: u64) -> u16 {
        while entry & VALUE == 0 {
            let (at, bits) = node(entry);
            let first = (high >> (64 - bits)) as u32;
            if entry & LIST != 0 {
                return self.words[at..].first_chunk().map_or(0, |list| listed(list, first));
            }
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
        (entry & !VALUE) as u16
    }

    /// First and last address of blocks with one value, IPv4 mapped: all addresses, in the order of each family.
    pub(crate) fn each(&self, mut visit: impl FnMut(u128, u128, u16)) {
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
        visit: &mut dyn FnMut(u128, u128, u16),
    ) {
        let last = first | u128::MAX.checked_shr(depth).unwrap_or(0);
        if entry & VALUE != 0 {
            return visit(first, last, (entry & !VALUE) as u16);
        }
        let (at, bits) = node(entry);
        let inner = depth + bits;
        if entry & LIST != 0 {
            let list = &self.words[at..at + LINE];
            let begins: [_; LINE] =
                std::array::from_fn(|index| first | place(half(list, index), bits, depth));
            for (index, begin) in begins.iter().enumerate() {
                let next = begins.get(index + 1).filter(|next| *next > begin);
                visit(*begin, next.map_or(last, |next| next - 1), half(list, LINE + index) as u16);
                if next.is_none() {
                    break;
                }
            }
            return;
        }
        if entry & SHARED == 0 {
            for slot in 0..1 << bits {
                let begins = first | place(slot, bits, depth);
                self.each_below(self.words[at + slot as usize], begins, inner, visit);
            }
            return;
        }
        let expected = first | place(self.words[at], bits, depth);
        let otherwise = (self.words[at + 1] & !VALUE) as u16;
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

/// The entry for a node at this place.
const fn entry_of(bits: u32, at: usize) -> u32 {
    (bits - 1) << BITS_AT | (at / UNIT) as u32
}

/// The half of a list's words that has this index: where a segment begins, and after [`LINE`] of these the values.
const fn half(list: &[u32], index: usize) -> u32 {
    list[index / 2] >> (index % 2 * 16) & 0xffff
}

/// The value of the segment of a list that has these bits. Four segments at a time, without a branch: a field's highest
/// bit stays where the bits are at its segment's begin or after it.
fn listed(list: &[u32; LINE], bits: u32) -> u16 {
    let keys = (u64::from(bits) * FIELDS) | (FIELDS << LISTED_BITS);
    let begun: u64 = list[..LINE / 2]
        .chunks_exact(2)
        .map(|pair| keys.wrapping_sub(u64::from(pair[1]) << 32 | u64::from(pair[0])))
        .map(|compared| compared >> LISTED_BITS & FIELDS)
        .sum();
    // The sum of the four fields. The first segment begins at 0.
    let begun = begun.wrapping_mul(FIELDS) >> 48;
    half(list, LINE + (begun as usize - 1) % LINE) as u16
}

/// Where a slot of a node of `bits` begins. The node's addresses share `depth` bits.
fn place(slot: u32, bits: u32, depth: u32) -> u128 {
    u128::from(slot) << (128 - bits) >> depth
}

/// Networks flattened: where each value begins, in ascending order.
struct Segments {
    starts: Vec<u128>,
    values: Vec<u16>,
}

impl Segments {
    fn new(mut networks: Vec<PrefixNetwork>, outside: u16) -> Self {
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
    fn close(&mut self, around: &mut Vec<(u128, u16)>, next: Option<u128>) {
        while let Some((last, _)) = around.pop_if(|(last, _)| next.is_none_or(|it| *last < it)) {
            if let (Some(after), Some((_, value))) = (last.checked_add(1), around.last()) {
                self.begin(after, *value);
            }
        }
    }

    /// Begins a segment. One that begins at the same place had no address.
    fn begin(&mut self, start: u128, value: u16) {
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

    /// The bits after `depth` that distinguish these segments.
    fn left(&self, inside: &Range<usize>, depth: u32) -> u32 {
        let free = self.borders(inside).iter().map(|border| border.trailing_zeros()).min();
        128 - free.unwrap_or(0) - depth
    }

    /// How many of the `left` bits after `depth` a node branches on: the number that takes the least memory.
    fn bits(&self, inside: &Range<usize>, depth: u32, left: u32) -> u32 {
        let borders = self.borders(inside);
        // With fewer, lists are too small even if all are full.
        let least = (borders.len() / LINE).max(4).ilog2().min(MAX_BITS);
        let words = |bits: &u32| words(borders, depth + bits, left - bits) + (1 << bits);
        (least..=MAX_BITS.min(left)).min_by_key(words).unwrap_or(least)
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

/// Words below a node, about, if its slots share `depth` bits and `left` ones remain.
fn words(borders: &[u128], depth: u32, left: u32) -> usize {
    let slots = borders.chunk_by(|one, next| (one ^ next).leading_zeros() >= depth);
    let of_slot = |borders: &[u128]| {
        let begins = usize::from(borders[0].trailing_zeros() >= 128 - depth);
        match borders.len() - begins {
            0 => 0,
            _ if left <= FEW_BITS => UNIT.max(1 << left),
            1 | 2 => UNIT,
            inner if inner < LINE && left <= LISTED_BITS => LINE,
            // It takes another read.
            inner => inner * UNIT,
        }
    };
    slots.map(of_slot).sum()
}

#[derive(Default)]
struct Words(Vec<u32>);

impl Words {
    fn trie(&mut self, networks: Vec<PrefixNetwork>, outside: u16) -> Result<u32, TooLarge> {
        let segments = Segments::new(networks, outside);
        self.entry(&segments, 0..segments.starts.len(), 0, 0)
    }

    /// The entry for the segments with an address in the block from `first`. Its addresses share `depth` bits.
    fn entry(
        &mut self,
        all: &Segments,
        inside: Range<usize>,
        first: u128,
        depth: u32,
    ) -> Result<u32, TooLarge> {
        let value = VALUE | u32::from(all.values[inside.start]);
        if inside.len() == 1 {
            return Ok(value);
        }
        let left = all.left(&inside, depth);
        let is_listed = inside.len() <= LINE && left <= LISTED_BITS;
        let shared = all.shared(&inside).filter(|(_, shared)| *shared >= depth + MIN_SHARED);
        match shared {
            _ if left <= FEW_BITS => self.node(all, inside, left, (first, depth)),
            // Of one network it takes less than a list.
            Some(shared) if shared.1 == depth + left || !is_listed => {
                self.shared(all, inside, shared, (first, depth))
            }
            _ if is_listed => self.list(all, inside, depth),
            _ => {
                let bits = all.bits(&inside, depth, left);
                self.node(all, inside, bits, (first, depth))
            }
        }
    }

    fn shared(
        &mut self,
        all: &Segments,
        inside: Range<usize>,
        (address, shared): (u128, u32),
        (first, depth): (u128, u32),
    ) -> Result<u32, TooLarge> {
        let value = VALUE | u32::from(all.values[inside.start]);
        let bits = MAX_SHARED.min(shared - depth);
        let expected = (address << depth >> (128 - bits)) as u32;
        let first = first | place(expected, bits, depth);
        let at = self.room(3)?;
        let within = all.within(&inside, first, depth + bits);
        let inner = self.entry(all, within, first, depth + bits)?;
        self.0[at..at + 3].copy_from_slice(&[expected, value, inner]);
        Ok(SHARED | entry_of(bits, at))
    }

    fn list(&mut self, all: &Segments, inside: Range<usize>, depth: u32) -> Result<u32, TooLarge> {
        let at = self.room(LINE)?;
        let segments = inside.clone().chain(std::iter::repeat(inside.end - 1));
        for (index, segment) in segments.take(LINE).enumerate() {
            let is_first = segment == inside.start;
            let begin =
                if is_first { 0 } else { all.starts[segment] << depth >> (128 - LISTED_BITS) };
            let shift = index % 2 * 16;
            self.0[at + index / 2] |= (begin as u32) << shift;
            self.0[at + LINE / 2 + index / 2] |= u32::from(all.values[segment]) << shift;
        }
        Ok(LIST | entry_of(LISTED_BITS, at))
    }

    fn node(
        &mut self,
        all: &Segments,
        inside: Range<usize>,
        bits: u32,
        (first, depth): (u128, u32),
    ) -> Result<u32, TooLarge> {
        let at = self.room(1 << bits)?;
        self.fill(all, inside, (at, bits), (first, depth))?;
        Ok(entry_of(bits, at))
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
                self.0[at + slot as usize..at + to as usize]
                    .fill(VALUE | u32::from(all.values[current]));
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

    /// The place of `words` new words. They are in one cache line if they fit.
    fn room(&mut self, words: usize) -> Result<usize, TooLarge> {
        let unit = words.next_power_of_two().clamp(UNIT, LINE);
        let at = self.0.len().next_multiple_of(unit);
        if at + words > MAX_WORDS {
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

    const OUTSIDE: u16 = 99;

    fn network(address: u128, bits: u8, value: u16) -> PrefixNetwork {
        (address & !u128::MAX.checked_shr(bits.into()).unwrap_or(0), bits, value)
    }

    fn map(networks: &[PrefixNetwork]) -> PrefixMap {
        PrefixMap::new(networks, OUTSIDE).expect("it is small")
    }

    /// A search through all networks.
    fn longest(networks: &[PrefixNetwork], address: u128) -> u16 {
        let around = networks.iter().filter(|(first, bits, _)| {
            address & !u128::MAX.checked_shr((*bits).into()).unwrap_or(0) == *first
        });
        around.max_by_key(|(_, bits, _)| *bits).map_or(OUTSIDE, |(.., value)| *value)
    }

    fn address(bits: u128) -> IpAddr {
        Ipv6Addr::from_bits(bits).into()
    }

    /// Few different addresses, so that networks nest and touch; near the ends of the address space and of IPv4's.
    fn networks() -> impl Strategy<Value = Vec<PrefixNetwork>> {
        let spread = |drawn: u128| drawn.wrapping_mul(0x0410_4104_1041_0410_4104_1041_0410_4105);
        let base = prop_oneof![
            (0_u128..64).prop_map(spread),
            (0_u128..16).prop_map(move |drawn| MAPPED | spread(drawn) & 0xffff_ffff),
            (0_u128..8).prop_map(|drawn| MAPPED - 4 + drawn),
            (0_u128..4),
            (0_u128..4).prop_map(|drawn| u128::MAX - drawn),
        ];
        // Close together, so that they are listed.
        let near = (0_u128..1 << 15, any::<bool>()).prop_map(|(drawn, is_v4)| {
            if is_v4 { MAPPED | drawn } else { 0x2001_0db8 << 96 | drawn }
        });
        let one = prop_oneof![(base, 0_u8..=128, 0_u16..8), (near, 113_u8..=128, 0_u16..8)];
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
        assert_eq!((map.words(), map.roots()), (&[][..], [VALUE | u32::from(OUTSIDE); 2]));
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
            (1_u8..=128).map(|bits| network(at, bits, u16::from(bits))).collect();
        let map = map(&networks);
        for (first, bits, _) in &networks {
            let last = first | u128::MAX.checked_shr((*bits).into()).unwrap_or(0);
            for asked in [first.wrapping_sub(1), *first, last, last.wrapping_add(1)] {
                assert_eq!(map.find(address(asked)), longest(&networks, asked), "/{bits}");
            }
        }
    }

    /// Fifteen networks after each other, and what follows, below the bits that they share.
    #[test]
    fn segments_of_few_bits_are_listed_in_one_line() {
        let nth = |n: u16| network(0xfe7f << 112 | u128::from(n) << 82, 46, n);
        let map = map(&(0..15).map(nth).collect::<Vec<_>>());
        assert_eq!((map.roots()[1] & (VALUE | SHARED), map.words().len()), (SHARED, 2 * LINE));
        assert_eq!(map.words()[2] & LIST, LIST);
    }

    /// A /24 among random ones takes fewer than 24 bytes.
    #[test]
    fn memory_is_bounded() {
        let spread = |n: u32| u128::from(n.wrapping_mul(0x9e37_79b1) >> 8 << 8);
        let networks: Vec<_> =
            (0..200_000).map(|n| (MAPPED | spread(n), 120, (n % 2) as u16)).collect();
        let map = PrefixMap::new(&networks, OUTSIDE).expect("it is small");
        assert!(map.words().len() * 4 < 24 * 200_000, "{}", map.words().len());
        let hosts = |n: u64| (u128::from(n.wrapping_mul(0x9e37_79b9_7f4a_7c15)) << 64 | 1, 128, 1);
        let many: Vec<_> = (0..4_000_000).map(hosts).collect();
        assert_eq!(PrefixMap::new(&many, OUTSIDE), Err(TooLarge));
    }
}
