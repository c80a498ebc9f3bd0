//! Longest-prefix match in sorted arrays.

/// What a network has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Match {
    /// The prefix length of the network.
    pub(super) bits: u8,
    /// The index of its arm.
    pub(super) arm: u8,
}

/// A network: first and last address, and what it has.
pub(super) type Network<K> = (K, K, Match);

/// Nested networks, flattened to segments of addresses that each have one longest match, or none.
///
/// A look-up is a binary search among the first keys of blocks, which stay in the processor's caches, and one
/// within a block.
#[derive(Clone, Debug)]
pub(super) struct Segments<K> {
    /// The first key of each block.
    blocks: Box<[K]>,
    starts: Box<[K]>,
    matches: Box<[Option<Match>]>,
}

const BLOCK: usize = 64;

/// Numbers of addresses.
pub(super) trait Key: Copy + Ord {
    /// The next one; none after the last.
    fn next(self) -> Option<Self>;
}

impl Key for u32 {
    fn next(self) -> Option<Self> {
        self.checked_add(1)
    }
}

impl Key for u128 {
    fn next(self) -> Option<Self> {
        self.checked_add(1)
    }
}

impl<K: Key> Segments<K> {
    /// Flattens networks, which are nested or disjoint; no two are equal.
    pub(super) fn new(mut networks: Vec<Network<K>>) -> Self {
        networks.sort_unstable_by_key(|(first, _, found)| (*first, found.bits));
        let mut flat = Flat { segments: Vec::with_capacity(networks.len() * 2), open: Vec::new() };
        for (first, last, found) in networks {
            flat.close(Some(first));
            flat.begin(first, Some(found));
            flat.open.push((last, found));
        }
        flat.close(None);
        let (starts, matches): (Vec<K>, Vec<_>) = flat.segments.into_iter().unzip();
        let blocks = starts.iter().step_by(BLOCK).copied().collect();
        Self { blocks, starts: starts.into(), matches: matches.into() }
    }

    /// Where segments begin, and their matches: each network at least once, unless others cover it.
    pub(super) fn iter(&self) -> impl Iterator<Item = (K, Match)> {
        let matches = self.starts.iter().zip(&self.matches);
        matches.filter_map(|(start, found)| found.map(|found| (*start, found)))
    }

    /// The longest match of `key`.
    pub(super) fn find(&self, key: K) -> Option<Match> {
        let block = self.blocks.partition_point(|first| *first <= key).checked_sub(1)?;
        let from = block * BLOCK;
        let to = self.starts.len().min(from + BLOCK);
        let inside = self.starts[from..to].partition_point(|start| *start <= key);
        self.matches[from + inside - 1]
    }
}

/// The segments so far, and the networks that contain the current address, innermost last.
struct Flat<K> {
    segments: Vec<(K, Option<Match>)>,
    open: Vec<(K, Match)>,
}

impl<K: Key> Flat<K> {
    /// Closes the networks that end before `next`, or all.
    fn close(&mut self, next: Option<K>) {
        while let Some((last, _)) = self.open.pop_if(|(last, _)| next.is_none_or(|it| *last < it)) {
            let around = self.open.last().map(|(_, found)| *found);
            if let Some(after) = last.next() {
                self.begin(after, around);
            }
        }
    }

    /// Begins a segment. One that begins at the same place had no address.
    fn begin(&mut self, start: K, found: Option<Match>) {
        self.segments.pop_if(|(before, _)| *before == start);
        self.segments.push((start, found));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn network((address, bits): (u32, u8), arm: u8) -> Network<u32> {
        let free = u32::MAX.checked_shr(u32::from(bits)).unwrap_or(0);
        (address & !free, address | free, Match { bits, arm })
    }

    proptest! {
        /// Against a search through all networks. Few different addresses, so that networks nest and touch.
        #[test]
        fn the_longest_network_is_found(
            drawn in prop::collection::btree_map((0_u32..64, 0_u8..=32), any::<u8>(), 0..200),
            asked in prop::collection::vec(any::<u32>(), 20),
        ) {
            let spread = |address: u32| address.wrapping_mul(0x0410_4104);
            let mut networks: Vec<_> =
                drawn.iter().map(|((at, bits), arm)| network((spread(*at), *bits), *arm)).collect();
            networks.sort_unstable_by_key(|(first, _, found)| (*first, found.bits));
            networks.dedup_by_key(|(first, _, found)| (*first, found.bits));
            let segments = Segments::new(networks.clone());
            let edges = networks.iter().flat_map(|(first, last, _)| {
                [first.wrapping_sub(1), *first, *last, last.wrapping_add(1)]
            });
            for key in asked.into_iter().chain(edges) {
                let around = networks.iter().filter(|(first, last, _)| (*first..=*last).contains(&key));
                let longest = around.max_by_key(|(.., found)| found.bits).map(|(.., found)| *found);
                prop_assert_eq!(segments.find(key), longest, "{}", key);
            }
        }
    }
}
